package session_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

type silent struct{}

func (silent) Printf(string, ...any) {}

// rawClient returns a client of go-zookeeper that has a session.
func rawClient(t *testing.T, d dial) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{"127.0.0.1:1", "127.0.0.1:2"}, 2*time.Minute, zk.WithLogger(silent{}),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return d(t.Context(), "tcp", "h:1") }))
	must(t, err)
	t.Cleanup(c.Close)
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return c.State() == zk.StateHasSession })
	return c
}

// Of three servers, the leader is cut off in such a way that it goes on leading for longer than the others wait for it: they
// elect another meanwhile. Three clients make nodes at the new leader, lose the replies, and come to the old one, which
// answers a sync, and the list behind it, by itself. A client that believes it leaves an orphan for as long as its session
// lasts. Enter searches behind a write, and leaves none, also when it is cancelled.
func TestEnterAtCutOffLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = "/d"
		ctx, srv := t.Context(), zktest.Start(t, zktest.Servers(3))
		leader, ok := srv.Leader()
		if !ok {
			t.Fatal("no leader")
		}
		others := []int{(leader + 1) % 3, (leader + 2) % 3}
		var at atomic.Int32 // the server to which the three clients connect
		at.Store(int32(others[0]))
		switched := func(ctx context.Context, network, addr string) (net.Conn, error) {
			return srv.DialerTo(int(at.Load()))(ctx, network, addr)
		}
		long := session.WithTimeout(40 * time.Second)
		_, cancelled := virtually(t, "h:1", switched, long)
		_, s := virtually(t, "h:1", switched, long)
		_, other := virtually(t, "h:1", srv.DialerTo(others[0]), long)
		raw, keeps := rawClient(t, switched), []*zk.Conn{rawClient(t, srv.DialerTo(others[0])), rawClient(t, srv.DialerTo(others[1]))}
		must(t, makeDir(ctx, other, d))
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble

		for _, i := range others {
			srv.CutLink(leader, i)
		}
		for range 16 { // 8 s, which is less than the others wait for the leader
			for _, keep := range keeps {
				go func() { _, _ = keep.Sync("/") }()
			}
			time.Sleep(500 * time.Millisecond) //nolint:forbidigo // in a bubble
		}
		for _, i := range others {
			srv.CutLink(i, leader)
		}
		srv.Refuse(true)
		zktest.Eventually(t, 2*testserver.Patience, "another leader", func() bool {
			now, ok := srv.Leader()
			if ok = ok && now != leader; ok {
				at.Store(int32(3 - leader - now)) // its follower
			}
			return ok
		})
		follower := at.Load()

		var held []*zktest.Fault
		for _, name := range []string{"/_c_", "/_c_", "/plain"} {
			held = append(held, srv.HoldReply(zktest.On(zktest.OpCreate, d+name)))
		}
		cancelling, cancel := context.WithCancel(ctx)
		ends := expect.Go(func() error {
			return expect.Err(cancelled.Enter(cancelling, session.NewNode{Dir: d, Name: "cancelled-"}))
		})
		enters := make(chan entered, 1)
		go func() {
			n, err := s.Enter(ctx, session.NewNode{Dir: d, Name: "enters-"})
			enters <- entered{n, err}
		}()
		srv.Refuse(false)
		zktest.Eventually(t, testserver.Patience, "a connection of the plain client", func() bool { return raw.State() == zk.StateHasSession })
		plain := expect.Go(func() error {
			return expect.Err(raw.Create(d+"/plain", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
		})
		for _, f := range held {
			expect.Receive(t, "the reply to a create", f.Hit())
		}
		at.Store(int32(leader))
		srv.ResetRequests()
		cancel()
		wantErr(t, "the cancelled Enter", expect.Receive(t, "the cancelled Enter", ends), context.Canceled)
		srv.Disconnect()
		wantErr(t, "the plain create", expect.Receive(t, "the plain create", plain), zk.ErrConnectionClosed)
		for _, f := range held {
			f.Release()
		}
		zktest.Eventually(t, 2*testserver.Patience, "the answer to a sync", func() bool { _, err := raw.Sync(d); return err == nil })
		names, _, err := raw.Children(d)
		if must(t, err); len(names) != 0 {
			t.Fatalf("behind a sync there are %q: the leader has not been cut off", names)
		}
		zktest.Eventually(t, testserver.Patience, "the searches of the others at the old leader", func() bool {
			return srv.Count(zktest.On(zktest.OpGetChildren2, d)) >= 3
		})
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		if len(enters) > 0 {
			t.Fatalf("Enter has returned without a quorum: %v", (<-enters).err)
		}

		at.Store(follower)
		srv.HealLinks()
		got := expect.Receive(t, "Enter", enters)
		must(t, got.err)
		left := func(what string, want ...string) {
			t.Helper()
			zktest.Eventually(t, testserver.Patience, what, func() bool {
				names, _, err := other.Children(ctx, d)
				must(t, err)
				all := strings.Join(names, " ")
				ok := len(names) == len(want)
				for _, name := range want {
					ok = ok && strings.Contains(all, name)
				}
				return ok
			})
		}
		left("the orphan, and the node that Enter has found", "plain", "enters-")
		must(t, cancelled.Err())
		must(t, srv.Expire(ctx, raw.SessionID()))
		left("the end of the orphan with its session", "enters-")
		must(t, gone(got.node.Remove(ctx)))
	})
}
