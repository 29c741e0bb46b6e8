package zktest_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// createAsync creates a node and sends what came of it.
func createAsync(conn *zk.Conn, path string, flags int32) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
		result <- err
	}()
	return result
}

func TestCutBefore(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	cut := p.CutBefore(zktest.On(zktest.OpCreate, path))
	exists(t, conn, "/") // does not match
	pending(t, cut.Hit(), "a cut at another request")

	if err := receive(t, createAsync(conn, path, 0), "the create"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("create: %v, want %v", err, zk.ErrConnectionClosed)
	}
	receive(t, cut.Hit(), "the hit")
	if exists(t, direct(t), path) {
		t.Error("the request has reached the server")
	}
	zktest.Eventually(t, testserver.Patience, "reconnection", func() bool { return conn.State() == zk.StateHasSession })
	create(t, conn, path, 0) // it strikes once
}

func TestCutAfterCommit(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	cut := p.CutAfterCommit(zktest.On(zktest.OpCreate, path))
	if err := receive(t, createAsync(conn, path, 0), "the create"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("create: %v, want %v", err, zk.ErrConnectionClosed)
	}
	receive(t, cut.Hit(), "the hit")
	if !exists(t, direct(t), path) {
		t.Error("the request has not been processed")
	}
}

func TestCutHandshake(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	p := zktest.StartProxy(t, sharedServer(t))
	before := p.CutBefore(zktest.On(zktest.OpConnect, ""))
	after := p.CutAfterCommit(zktest.On(zktest.OpConnect, ""))
	conn, _ := connect(t, p.Addr())
	receive(t, before.Hit(), "the cut before the handshake")
	receive(t, after.Hit(), "the cut after the handshake")
	// The server granted two sessions, and the client knows the second one.
	if ids := p.Sessions(); len(ids) != 2 || ids[1] != conn.SessionID() {
		t.Errorf("sessions %#x, want two, the last %#x", ids, conn.SessionID())
	}
}

func TestHoldRequest(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	hold := p.HoldRequest(zktest.On(zktest.OpCreate, path))
	created := createAsync(conn, path, 0)
	receive(t, hold.Hit(), "the hit")

	// Later requests of this connection wait too. Another connection does not wait.
	again := createAsync(conn, path, 0)
	pending(t, created, "the reply to a request that is held")
	if exists(t, direct(t), path) {
		t.Error("the request has reached the server")
	}
	hold.Release()
	hold.Release()
	if err := receive(t, created, "the create"); err != nil {
		t.Errorf("create: %v", err)
	}
	if err := receive(t, again, "the second create"); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("second create: %v, want %v", err, zk.ErrNodeExists)
	}
}

func TestHoldReply(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	hold := p.HoldReply(zktest.On(zktest.OpCreate, path))
	created := createAsync(conn, path, 0)
	receive(t, hold.Hit(), "the hit")
	if !exists(t, direct(t), path) {
		t.Error("the request has not been processed")
	}
	pending(t, created, "a reply that is held")
	hold.Release()
	if err := receive(t, created, "the create"); err != nil {
		t.Errorf("create: %v", err)
	}
}

func TestHoldNotification(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	create(t, conn, path, 0)
	_, _, events, err := conn.GetW(path)
	if err != nil {
		t.Fatal(err)
	}
	hold := p.HoldReply(zktest.On(zktest.OpNotification, path))
	if err := direct(t).Delete(path, -1); err != nil {
		t.Fatal(err)
	}
	receive(t, hold.Hit(), "the hit")
	pending(t, events, "a watch event that is held")
	hold.Release()
	if e := receive(t, events, "the event"); e.Type != zk.EventNodeDeleted {
		t.Errorf("event %v, want %v", e.Type, zk.EventNodeDeleted)
	}
}

// A connection with a held frame can still be cut, which drops the frame.
func TestHoldThenDisconnect(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	hold := p.HoldRequest(zktest.On(zktest.OpCreate, path))
	created := createAsync(conn, path, 0)
	receive(t, hold.Hit(), "the hit")
	p.Disconnect()
	if err := receive(t, created, "the create"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("create: %v, want %v", err, zk.ErrConnectionClosed)
	}
	hold.Release()
	if exists(t, direct(t), path) {
		t.Error("the request has reached the server")
	}
}

// A hold and a cut can both strike the same request: first the hold, then the cut.
func TestHoldThenCut(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	cut := p.CutAfterCommit(zktest.On(zktest.OpCreate, path))
	hold := p.HoldReply(zktest.On(zktest.OpCreate, path))
	created := createAsync(conn, path, 0)
	receive(t, hold.Hit(), "the hold")
	pending(t, cut.Hit(), "the cut of what is held")
	hold.Release()
	receive(t, cut.Hit(), "the cut")
	if err := receive(t, created, "the create"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("create: %v, want %v", err, zk.ErrConnectionClosed)
	}
}

func TestReleaseDisarms(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	cut := p.CutBefore(zktest.Any())
	cut.Release()
	create(t, conn, path, 0)
	pending(t, cut.Hit(), "a fault that was released")
}

// If two faults match a request, the older one strikes. The other one strikes the next request.
func TestFaultsStrikeInOrder(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	first := p.HoldRequest(zktest.On(zktest.OpExists, path))
	second := p.HoldRequest(zktest.On(zktest.OpExists, path))
	asked := make(chan error, 2)
	for range 2 {
		go func() {
			_, _, err := conn.Exists(path)
			asked <- err
		}()
	}
	receive(t, first.Hit(), "the first hit")
	pending(t, second.Hit(), "the second hit")
	first.Release()
	receive(t, second.Hit(), "the second hit")
	second.Release()
	for range 2 {
		if err := receive(t, asked, "an answer"); err != nil {
			t.Error(err)
		}
	}
}
