package zktest_test

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

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
		must(t, receive(t, asked, "an answer"))
	}
}
