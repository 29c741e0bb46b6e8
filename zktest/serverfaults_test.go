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

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation.
func TestReplyIsLost(t *testing.T) {
	srv := zktest.Start(t)
	m, err := session.Connect(t.Context(), srv.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/report")
	if err != nil {
		t.Fatal(err)
	}
	cut := srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/locks/report/"))
	if err := lock.Lock(t.Context()); err != nil {
		t.Error(err) // the connection breaks, and Lock succeeds all the same
	}
	<-cut.Hit()
}

// piped returns a client of the server that has a session, over a pipe.
func piped(t *testing.T, srv *zktest.Server) *zk.Conn {
	t.Helper()
	dial := func(network, addr string, timeout time.Duration) (net.Conn, error) {
		return srv.Dialer()(context.Background(), network, addr)
	}
	conn, _, err := zk.Connect([]string{"127.0.0.1:1"}, 10*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(dial))
	must(t, err)
	t.Cleanup(conn.Close)
	online(t, conn)
	return conn
}

func online(t *testing.T, conn *zk.Conn) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return conn.State() == zk.StateHasSession })
}

// createAsync creates a node and sends what came of it.
func createAsync(conn *zk.Conn, path string) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		result <- err
	}()
	return result
}

// hit reports whether a fault has struck by now.
func hit(f *zktest.Fault) bool {
	synctest.Wait()
	select {
	case <-f.Hit():
		return true
	default:
		return false
	}
}

// What each fault does to a create. The faults of a Server are those of a proxy in front of it.
func TestFaults(t *testing.T) {
	type faults func(*zktest.Server, zktest.Match) *zktest.Fault
	cutBefore, cutAfter := (*zktest.Server).CutBefore, (*zktest.Server).CutAfterCommit
	holdRequest, holdReply := (*zktest.Server).HoldRequest, (*zktest.Server).HoldReply
	release := func(_ *zktest.Server, f *zktest.Fault) { f.Release() }
	disconnect := func(srv *zktest.Server, _ *zktest.Fault) { srv.Disconnect() }
	for name, c := range map[string]struct {
		later, first faults // later strikes when first has ended
		done         bool   // when the first has struck
		then         func(*zktest.Server, *zktest.Fault)
		want         error
	}{
		"cut before":              {nil, cutBefore, false, nil, zk.ErrConnectionClosed},
		"cut after commit":        {nil, cutAfter, true, nil, zk.ErrConnectionClosed},
		"request held":            {nil, holdRequest, false, release, nil},
		"reply held":              {nil, holdReply, true, release, nil},
		"held, then cut":          {cutAfter, holdReply, true, release, zk.ErrConnectionClosed},
		"held, then disconnected": {nil, holdRequest, false, disconnect, zk.ErrConnectionClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				conn, other, match := piped(t, srv), piped(t, srv), zktest.On(zktest.OpCreate, "/f")
				var later *zktest.Fault
				if c.later != nil {
					later = c.later(srv, match)
				}
				first := c.first(srv, match)
				created := createAsync(conn, "/f")
				<-first.Hit()
				if later != nil && hit(later) {
					t.Error("what is held is cut")
				}
				synctest.Wait()
				if got := exists(t, other, "/f"); got != c.done {
					t.Errorf("the create is done: %v, want %v", got, c.done)
				}
				if c.then != nil {
					c.then(srv, first)
				}
				if err := <-created; !errors.Is(err, c.want) {
					t.Errorf("create: %v, want %v", err, c.want)
				}
				if later != nil {
					<-later.Hit()
				}
				online(t, conn)
				if n := srv.Count(match); n != 1 {
					t.Errorf("%d creates seen, want 1", n)
				}
				if srv.ResetRequests(); len(srv.Requests()) != 0 {
					t.Error("requests after a reset")
				}
			})
		})
	}
}

// If two faults match a request, the older one strikes. The other one strikes the next request.
func TestFaultsStrikeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn, match := piped(t, srv), zktest.Any(zktest.OpCreate)
		first, second := srv.HoldRequest(match), srv.HoldRequest(match)
		one, two := createAsync(conn, "/1"), createAsync(conn, "/2")
		if !hit(first) || hit(second) {
			t.Error("another fault has struck than the first")
		}
		first.Release()
		<-second.Hit()
		second.Release()
		must(t, errors.Join(<-one, <-two))
	})
}

// An expired session takes its nodes along, in process and on a real server.
func TestExpire(t *testing.T) {
	longtest.InCI(t)
	zktest.Run(t, func(t *testing.T, p *zktest.Proxy) {
		conn, events := connect(t, p.Addr())
		other, _ := connect(t, p.Addr())
		create(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		must(t, p.Expire(soon(t), id))
		if exists(t, other, "/e") {
			t.Error("an ephemeral node has survived its session")
		}
		for receive(t, events, "the event that says the session expired").State != zk.StateExpired {
		}
		online(t, conn)
		if ids := p.Sessions(); !slices.Equal(ids, []int64{id, other.SessionID(), conn.SessionID()}) {
			t.Errorf("sessions %#x, want %#x, %#x, %#x", ids, id, other.SessionID(), conn.SessionID())
		}
		if err := p.Expire(soon(t), id); err != nil {
			t.Errorf("expiring what has expired: %v", err)
		}
		if err := p.Expire(soon(t), 42); err == nil {
			t.Error("expiring what never was: no error")
		}
	})
}

// During a partition the client does not learn that its session has expired. It does when the partition is over.
func TestExpireBehindBlackhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn, other := piped(t, srv), piped(t, srv)
		create(t, conn, "/e", zk.FlagEphemeral)
		id := conn.SessionID()
		srv.Blackhole(zktest.Both)
		must(t, srv.Expire(t.Context(), id))
		synctest.Wait()
		if conn.SessionID() != id {
			t.Error("the client knows")
		}
		srv.Heal()
		zktest.Eventually(t, testserver.Patience, "a new session", func() bool {
			return conn.State() == zk.StateHasSession && conn.SessionID() != id
		})
		if exists(t, other, "/e") {
			t.Error("an ephemeral node has survived its session")
		}
	})
}

func TestServerDeleteNode(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	conn := piped(t, srv)
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
	conn, switches := piped(t, srv), testserver.Switch(srv)
	create(t, conn, "/s", 0)
	must(t, switches.SetSequence("/s", 1<<31-2))
	for _, want := range []string{"/s/a-2147483646", "/s/a-2147483647", ""} {
		path, err := conn.Create("/s/a-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if path != want || (want == "") != errors.Is(err, zk.ErrNodeExists) {
			t.Errorf("created %q, %v; want %q", path, err, want)
		}
	}
	if switches.SetSequence("/none", 1) == nil || switches.SetSequence("/s", -1) == nil {
		t.Error("no error for a node that is not there, or for a negative number")
	}
}
