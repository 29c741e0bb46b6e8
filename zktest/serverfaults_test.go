package zktest_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// piped returns a client of the server that has a session, over a pipe.
func piped(t *testing.T, srv *zktest.Server) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	dial := func(network, addr string, timeout time.Duration) (net.Conn, error) {
		return srv.Dialer()(context.Background(), network, addr)
	}
	conn, events, err := zk.Connect([]string{"127.0.0.1:1"}, 10*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(dial))
	must(t, err)
	t.Cleanup(conn.Close)
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return conn.State() == zk.StateHasSession })
	return conn, events
}

// The faults are those of the proxy, which has tests of its own. This test checks that each of them affects a Server.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn, _ := piped(t, srv)
		other, _ := piped(t, srv)
		create(t, conn, "/f", 0)

		before := srv.CutBefore(zktest.On(zktest.OpCreate, "/f/before"))
		if err := <-createAsync(conn, "/f/before", 0); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("create: %v", err)
		}
		<-before.Hit()
		if exists(t, other, "/f/before") {
			t.Error("what was cut before has been done")
		}
		online(t, conn)

		after := srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/f/after"))
		if err := <-createAsync(conn, "/f/after", 0); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Errorf("create: %v", err)
		}
		<-after.Hit()
		if !exists(t, other, "/f/after") {
			t.Error("what was cut after its commit has not been done")
		}
		online(t, conn)

		request := srv.HoldRequest(zktest.On(zktest.OpCreate, "/f/request"))
		created := createAsync(conn, "/f/request", 0)
		<-request.Hit()
		synctest.Wait()
		if exists(t, other, "/f/request") {
			t.Error("a request that is held has been done")
		}
		request.Release()
		must(t, <-created)

		reply := srv.HoldReply(zktest.On(zktest.OpCreate, "/f/reply"))
		created = createAsync(conn, "/f/reply", 0)
		<-reply.Hit()
		if !exists(t, other, "/f/reply") {
			t.Error("what has its reply held has not been done")
		}
		reply.Release()
		must(t, <-created)
		if n := srv.Count(zktest.On(zktest.OpCreate, "/f/")); n != 4 {
			t.Errorf("%d creates seen, want 4", n)
		}
		srv.ResetRequests()
		if len(srv.Requests()) != 0 {
			t.Error("requests after a reset")
		}
	})
}

func online(t *testing.T, conn *zk.Conn) {
	t.Helper()
	zktest.Eventually(t, 20*time.Second, "reconnection", func() bool { return conn.State() == zk.StateHasSession })
}

func TestServerExpire(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	conn, _ := piped(t, srv)
	other, _ := connect(t, srv.Addr())
	create(t, conn, "/e", zk.FlagEphemeral)
	id := conn.SessionID()
	if ids := srv.Sessions(); !slices.Equal(ids, []int64{id, other.SessionID()}) {
		t.Errorf("sessions %#x", ids)
	}
	must(t, srv.Expire(soon(t), id))
	if exists(t, other, "/e") {
		t.Error("an ephemeral node outlives its session")
	}
	zktest.Eventually(t, 20*time.Second, "a new session", func() bool {
		return conn.State() == zk.StateHasSession && conn.SessionID() != id
	})
	if err := srv.Expire(soon(t), id); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := srv.Expire(soon(t), 42); err == nil {
		t.Error("expiring what never was: no error")
	}
}

func TestServerDeleteNode(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	conn, _ := piped(t, srv)
	create(t, conn, "/d", 0)
	create(t, conn, "/d/e", zk.FlagEphemeral)
	_, _, gone, err := conn.GetW("/d/e")
	must(t, err)
	for _, path := range []string{"/d", "/none", "/", "/zookeeper"} {
		if err := srv.DeleteNode(path); err == nil {
			t.Errorf("deleting %s: no error", path)
		}
	}
	must(t, srv.DeleteNode("/d/e"))
	if e := receive(t, gone, "the event"); e.Type != zk.EventNodeDeleted {
		t.Errorf("event %+v", e)
	}
}

// The counter of sequential nodes stays at its largest value, as in ZooKeeper.
func TestServerSequenceUsedUp(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	conn, _ := piped(t, srv)
	create(t, conn, "/s", 0)
	must(t, testserver.Switch(srv).SetSequence("/s", 1<<31-2))
	for _, want := range []string{"/s/a-2147483646", "/s/a-2147483647", ""} {
		path, err := conn.Create("/s/a-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if path != want || (want == "") != errors.Is(err, zk.ErrNodeExists) {
			t.Errorf("created %q, %v; want %q", path, err, want)
		}
	}
	if err := testserver.Switch(srv).SetSequence("/none", 1); err == nil {
		t.Error("no error for a node that is not there")
	}
	if err := testserver.Switch(srv).SetSequence("/s", -1); err == nil {
		t.Error("no error for a negative number")
	}
}
