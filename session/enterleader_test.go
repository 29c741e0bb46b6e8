package session_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// cutOff is three servers, whose leader is cut off in such a way that it goes on leading for longer than the others wait
// for it: they elect another meanwhile. Three clients make nodes at the new leader, lose the replies, and come to the
// old one. One has called Enter and is cancelled, one has called Enter, and one looks for its node behind a sync.
type cutOff struct {
	faulty
	t            *testing.T
	leader       int
	gap          time.Duration // for which the leader hears of others that do not hear of it; less than they wait for it
	cutOneWay    func(from, to int)
	heal         func()
	leads        func(server int) bool
	gaveUp       func() bool      // the old leader leads no more
	lateHeal     bool             // the servers stay cut off until then
	answered     func()           // waits until what has arrived at the old leader is answered
	keep         [3]func()        // sends a sync to each server but the leader, and does not wait
	target       func(server int) // sets where the three clients connect to
	cancelled, s *session.Session // two of these
	raw          *zk.Conn         // the third
	other        *session.Session
	d            string
}

// depose returns the follower of the new leader.
func (c *cutOff) depose() (follower int) {
	var others []int
	for i := range 3 {
		if i != c.leader {
			others = append(others, i)
		}
	}
	for _, i := range others {
		c.cutOneWay(c.leader, i)
	}
	for began := time.Now(); time.Since(began) < c.gap; time.Sleep(500 * time.Millisecond) { //nolint:forbidigo // spreads requests over the gap, and waits for nothing
		for _, i := range others {
			c.keep[i]()
		}
	}
	for _, i := range others {
		c.cutOneWay(i, c.leader)
	}
	c.Refuse(true)
	zktest.Eventually(c.t, 2*testserver.Patience, "another leader", func() bool {
		for n, i := range others {
			if c.leads(i) {
				follower = others[1-n]
				return true
			}
		}
		return false
	})
	return follower
}

// run reports false if the old leader has given up too early to show anything, because the machine is busy.
func (c *cutOff) run() (shown bool) {
	t, ctx := c.t, c.t.Context()
	follower := c.depose()
	c.target(follower)
	var held [3]*zktest.Fault
	for i, name := range []string{"/_c_", "/_c_", "/plain"} {
		held[i] = c.HoldReply(zktest.On(zktest.OpCreate, c.d+name))
	}
	cancelling, cancel := context.WithCancel(ctx)
	ends, enters, plain := make(chan error, 1), make(chan entered, 1), make(chan error, 1)
	go func() {
		_, err := c.cancelled.Enter(cancelling, session.NewNode{Dir: c.d, Name: "cancelled-"})
		ends <- err
	}()
	go func() {
		n, err := c.s.Enter(ctx, session.NewNode{Dir: c.d, Name: "enters-"})
		enters <- entered{n, err}
	}()
	c.Refuse(false)
	connected := func() bool { return c.raw.State() == zk.StateHasSession }
	zktest.Eventually(t, testserver.Patience, "a connection of the plain client", connected)
	go func() {
		_, err := c.raw.Create(c.d+"/plain", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		plain <- err
	}()
	for _, f := range held {
		within(t, f.Hit(), "the reply to a create")
	}
	c.target(c.leader)
	c.ResetRequests()
	cancel()
	wantErr(t, "the cancelled Enter", within(t, ends, "the cancelled Enter"), context.Canceled)
	c.Disconnect()
	wantErr(t, "the plain create", within(t, plain, "the plain create"), zk.ErrConnectionClosed)
	for _, f := range held {
		f.Release()
	}

	zktest.Eventually(t, 2*testserver.Patience, "the answer to a sync", func() bool {
		_, err := c.raw.Sync(c.d)
		return err == nil || c.gaveUp()
	})
	names, _, err := c.raw.Children(c.d)
	if c.gaveUp() {
		c.heal()
		return false
	}
	must(t, err)
	if len(names) != 0 {
		t.Fatalf("behind a sync there are %q: the leader has not been cut off", names)
	}
	zktest.Eventually(t, testserver.Patience, "the searches of the others at the old leader", func() bool {
		return c.Count(zktest.On(zktest.OpGetChildren2, c.d)) >= 3 || c.gaveUp()
	})
	c.answered()
	select {
	case got := <-enters:
		if !c.gaveUp() {
			t.Errorf("Enter has returned without a quorum: %v", got.err)
		}
		return false
	default:
	}

	if c.lateHeal {
		zktest.Eventually(t, 3*testserver.Patience, "the end of the old leader", c.gaveUp)
	}
	c.target(follower)
	c.heal()
	got := within(t, enters, "Enter")
	must(t, got.err)
	left := func(what string, want ...string) {
		t.Helper()
		var names []string
		zktest.Eventually(t, testserver.Patience, what, func() (ok bool) {
			var err error
			names, _, err = c.other.Children(ctx, c.d)
			must(t, err)
			if ok = len(names) == len(want); ok {
				all := strings.Join(names, " ")
				for _, name := range want {
					ok = ok && strings.Contains(all, name)
				}
			}
			return ok
		})
	}
	left("the orphan, and the node that Enter has found", "plain", "enters-")
	must(t, c.cancelled.Err())
	must(t, c.Expire(ctx, c.raw.SessionID()))
	left("the end of the orphan with its session", "enters-")
	r := got.node.Remove(ctx)
	within(t, r.Done(), "the removal")
	must(t, r.Err())
	return true
}

// rawClient returns a client of go-zookeeper that has a session.
func rawClient(t *testing.T, dial func() (net.Conn, error)) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{"127.0.0.1:1", "127.0.0.1:2"}, 2*time.Minute, zk.WithLogger(silence{}),
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return dial() }))
	must(t, err)
	t.Cleanup(c.Close)
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return c.State() == zk.StateHasSession })
	return c
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// A leader that has been cut off answers a sync, and the list behind it, by itself. A search that believes it leaves an
// orphan for as long as its session lasts. Enter searches behind a write, and leaves none.
func TestEnterAtCutOffLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.Servers(3))
		leader, ok := srv.Leader()
		if !ok {
			t.Fatal("no leader")
		}
		c := &cutOff{faulty: srv, t: t, d: "/d", leader: leader, gap: 8 * time.Second, cutOneWay: srv.CutLink}
		c.leads = func(i int) bool {
			now, ok := srv.Leader()
			return ok && now == i
		}
		healed := false
		c.gaveUp, c.heal = func() bool { return healed }, func() { healed = true; srv.HealLinks() }
		c.answered = func() { time.Sleep(time.Second) } //nolint:forbidigo // in a bubble
		var at atomic.Int32
		at.Store(int32((leader + 1) % 3))
		c.target = func(i int) { at.Store(int32(i)) }
		switched := func(ctx context.Context, network, addr string) (net.Conn, error) {
			return srv.DialerTo(int(at.Load()))(ctx, network, addr)
		}
		long := session.WithTimeout(40 * time.Second)
		_, c.cancelled = virtually(t, "h:1", switched, long)
		_, c.s = virtually(t, "h:1", switched, long)
		_, c.other = virtually(t, "h:1", srv.DialerTo((leader+1)%3), long)
		c.raw = rawClient(t, func() (net.Conn, error) { return switched(t.Context(), "tcp", "h:1") })
		for i := range c.keep {
			client := rawClient(t, func() (net.Conn, error) { return srv.DialerTo(i)(t.Context(), "tcp", "h:1") })
			c.keep[i] = func() { go func() { _, _ = client.Sync("/") }() }
		}
		must(t, makeDir(t.Context(), c.other, c.d))
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		if !c.run() {
			t.Error("the old leader has given up")
		}
	})
}

// The same on real servers.
func TestEnterAtRealCutOffLeader(t *testing.T) {
	longtest.Only(t)
	for range 3 {
		shown := false
		t.Run("", func(t *testing.T) { shown = realCutOff(t) })
		if shown || t.Failed() {
			return
		}
	}
	t.Error("the old leader has given up too early three times")
}

func realCutOff(t *testing.T) (shown bool) {
	const timeout = 2 * time.Minute
	e, err := zktest.NewReal(zktest.Servers(3), zktest.TickTime(time.Second), zktest.MaxSessionTimeout(timeout),
		zktest.Partitions(), zktest.Property("syncLimit", "20"))
	if errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	leader, err := e.Leader(patient(t))
	must(t, err)
	p := zktest.StartProxy(t, e.Addr((leader+1)%3))
	c := &cutOff{faulty: p, t: t, d: "/d", leader: leader, gap: 18 * time.Second, heal: e.HealPartitions, lateHeal: true}
	c.target = func(i int) { p.SetTarget(e.Addr(i)) }
	c.cutOneWay = func(from, to int) { must(t, e.PartitionOneWay(from, to)) }
	c.leads = func(i int) bool {
		m, err := e.Metrics(patient(t), i)
		return err == nil && m["zk_server_state"] == "leader"
	}
	c.gaveUp, c.answered = func() bool { return !c.leads(leader) }, func() {}
	connect := func(addr string) *session.Session {
		return testserver.Session(t, testserver.Connect(t, addr, session.WithTimeout(timeout)))
	}
	c.cancelled, c.s, c.other = connect(p.Addr()), connect(p.Addr()), connect(e.Addr((leader+1)%3))
	c.raw = rawClient(t, func() (net.Conn, error) { return net.DialTimeout("tcp", p.Addr(), time.Second) })
	for i := range c.keep {
		client := rawClient(t, func() (net.Conn, error) { return net.DialTimeout("tcp", e.Addr(i), time.Second) })
		c.keep[i] = func() { go func() { _, _ = client.Sync("/") }() } // a session of ours would send few without answers
	}
	must(t, makeDir(patient(t), c.other, c.d))
	for _, s := range []*session.Session{c.cancelled, c.s} {
		must(t, s.Sync(patient(t), c.d))
	}
	return c.run()
}
