package zktest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

const (
	tickOnStage  = 2 * time.Second
	shortSession = 4 * time.Second // the least that is granted
)

// Only some requests touch a session. For a follower's client, the lists in the follower's answers to pings do, once a
// second here. A write that the follower forwards does not, even if it is committed.
func TestTouches(t *testing.T) {
	onStage(t, func(s *stage) {
		far, near := s.call("far", 0, nil, shortSession), s.call("near", 2, nil, shortSession)
		moves := func(what string, c *caller, want bool, f func()) {
			t.Helper()
			before := s.expiry(c)
			f()
			if after := s.expiry(c); (after > before) != want {
				t.Errorf("%s moved the end of %s's session from %v to %v", what, c.name, before, after)
			}
		}
		s.passTo(3100 * time.Millisecond)
		moves("a ping of the leader's client", near, true, func() { near.does(ping()) })
		moves("requests of a follower's client", far, false, func() {
			far.does(ping())
			far.does(plain("/far"))
			far.does(syncAll())
		})
		moves("a handshake with a follower", far, true, func() { far = s.call("far", 1, far, shortSession) })
		s.passTo(4500 * time.Millisecond)
		moves("lists without the session", far, false, func() { s.passTo(6500 * time.Millisecond) })
		far.does(ping())
		moves("a list with the session", far, true, func() { s.passTo(7001 * time.Millisecond) })
		end := s.expiry(far)
		s.passTo(end - time.Millisecond)
		far.connected(true)
		s.passTo(end)
		far.connected(false)
	}, withTickPhases(0, 0, 0))
}

// At its election a new leader gives every session the full timeout with which the session was created.
func TestNewLeaderGivesWholeTimeouts(t *testing.T) {
	onStage(t, func(s *stage) {
		s.SetSessionTimeoutsOf(1, 30*time.Second, 30*time.Second)
		c := s.call("client", 0, nil, 8*time.Second)
		c = s.call("client again", 1, c, 8*time.Second)
		if c.timeout != 30*time.Second {
			t.Errorf("granted %v", c.timeout)
		}
		silent := s.call("silent", 0, nil, 8*time.Second)
		s.passTo(7 * time.Second)
		s.StopServer(2)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads at once", l)
		}
		c.connected(false)
		s.pass(200 * time.Millisecond)
		s.leads(1)
		want := 16 * time.Second // 7.2s and 8s, up to the next tick
		for _, c := range []*caller{c, silent} {
			if got := s.expiry(c); got != want {
				t.Errorf("%s's session ends at %v, want %v", c.name, got, want)
			}
		}
	}, withTickPhases(0, 0, 0))
}

// A cut in only one direction ends the connection, too: one end hears nothing, closes the connection,
// and the other end learns that.
func TestCutInOneDirection(t *testing.T) {
	for name, cut := range map[string][2]int{"from leader": {2, 0}, "to leader": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				c := s.call("client", 0, nil, 40*time.Second)
				s.passTo(4100 * time.Millisecond)
				s.CutLink(cut[0], cut[1])
				asked := c.ask(plain("/asked"))
				s.passTo(13900 * time.Millisecond)
				c.waits(asked)
				c.connected(true)
				s.passTo(14200 * time.Millisecond)
				c.connected(false)
				other := s.call("other", 1, nil, 40*time.Second)
				want := znode.CodeOK // the leader got it, and a majority
				if cut[0] == 0 {
					want = znode.CodeNoNode
				}
				other.wants(other.ask(there("/asked")), want)
				s.HealLinks()
				s.pass(200 * time.Millisecond)
				again := s.call("again", 0, c, 40*time.Second)
				again.wants(again.ask(there("/asked")), want)
			})
		})
	}
}

// A request that is forwarded late is not carried out if the session has moved to another server.
func TestSessionMoved(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 40*time.Second)
		s.CutLink(0, 2)
		c.ask(ephemeral("/late"))
		moved := s.call("moved", 1, c, 40*time.Second)
		moved.does(syncAll())
		s.pass(time.Second)
		s.HealLinks()
		moved.wants(moved.ask(there("/late")), znode.CodeNoNode)
		c.connected(false)
		moved.connected(true)
		if at, ok := s.ServerOf(c.session); at != 1 || !ok {
			t.Errorf("the session is at server %d, %v", at, ok)
		}
	})
}

// The requests of a session are answered in order, no matter which server answers them.
func TestPingWaitsBehindWrite(t *testing.T) {
	for server := range 3 {
		onStage(t, func(s *stage) {
			c, other := s.call("client", server, nil, 40*time.Second), s.call("other", server, nil, 40*time.Second)
			s.SetCommitDelay(time.Second)
			write := c.ask(plain("/n"))
			p, read := c.ask(ping()), c.ask(there("/n"))
			other.does(ping())
			other.wants(other.ask(there("/n")), znode.CodeNoNode)
			second := other.ask(syncAll())
			s.pass(999 * time.Millisecond)
			c.waits(p)
			c.waits(read)
			s.pass(time.Millisecond)
			c.wants(write, znode.CodeOK)
			c.wants(p, znode.CodeOK)
			c.wants(read, znode.CodeOK)
			want := time.Second
			if server == 2 {
				want = 0 // the leader does not ask its followers
			}
			if got := other.wants(second, znode.CodeOK).at; got != want {
				t.Errorf("server %d: a sync took %v, want %v", server, got, want)
			}
		})
	}
}

// A server that was stopped starts with its log, and gets the rest from the leader.
func TestStopAndStart(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 40*time.Second)
		c.does(plain("/before"))
		s.StopServer(0)
		s.StopServer(0)
		c.connected(false)
		if _, err := s.DialerTo(0)(s.t.Context(), "tcp", ""); err == nil {
			t.Error("a stopped server was dialed")
		}
		other := s.call("other", 1, c, 40*time.Second)
		other.does(plain("/meanwhile"))
		s.starts(0)
		s.pass(200 * time.Millisecond)
		back := s.call("back", 0, nil, 40*time.Second)
		back.does(there("/before"))
		back.does(there("/meanwhile"))
		// Without a majority no server leads. Committed transactions survive a stop of all servers.
		for i := range 3 {
			s.StopServer(i)
		}
		s.starts(1)
		s.pass(time.Minute)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads alone", l)
		}
		s.starts(0)
		s.pass(200 * time.Millisecond)
		s.leads(1)
		s.call("last", 0, other, 40*time.Second).does(there("/meanwhile"))
	})
}

// After a standstill, a leader processes the forwarded requests at once. The lists of touched sessions arrive later.
func TestHeldLeader(t *testing.T) {
	onStage(t, func(s *stage) {
		far, near := s.call("far", 0, nil, shortSession), s.call("near", 2, nil, 40*time.Second)
		s.passTo(1900 * time.Millisecond)
		s.HoldServer(2)
		s.passTo(3 * time.Second)
		far.does(ping()) // by the follower itself
		write, read := far.ask(plain("/n")), near.ask(there("/"))
		far.waits(write)
		near.waits(read)
		before := s.expiry(far)
		s.SetPingLag(50 * time.Millisecond)
		s.ReleaseServer(2)
		far.wants(write, znode.CodeOK)
		near.wants(read, znode.CodeOK)
		s.pass(49 * time.Millisecond)
		if got := s.expiry(far); got != before {
			t.Errorf("the session's end moved from %v to %v ahead of the pings", before, got)
		}
		s.pass(time.Millisecond)
		if got := s.expiry(far); got <= before {
			t.Errorf("the end is still %v", got)
		}
		// A standstill that the followers do not tolerate costs the leader its role.
		s.HoldServer(2)
		s.pass(11 * time.Second)
		s.leads(1)
		near.connected(true)
		stale := near.ask(there("/n"))
		s.ReleaseServer(2)
		near.wants(stale, znode.CodeOK) // by itself, for as long as it does not know
		s.pass(3 * time.Second)
		near.connected(false)
		s.leads(1)
	}, withTickPhases(0, 0, 0))
}

// A leader that is cut off answers reads for a while, and commits nothing.
func TestDeposedLeader(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 2, nil, 40*time.Second)
		reader := s.call("reader", 2, nil, 40*time.Second)
		dying := s.call("dying", 2, nil, shortSession)
		dying.does(ephemeral("/dying"))
		clients := []*caller{s.call("of 0", 0, nil, 40*time.Second), s.call("of 1", 1, nil, 40*time.Second)}
		s.passTo(4100 * time.Millisecond)
		dying.does(ping())
		for i := range 2 {
			s.CutLink(2, i)
		}
		s.pass(500 * time.Millisecond)
		for i := range 2 { // the leader hears of them half a second longer than they of it
			clients[i].ask(syncAll())
			s.CutLink(i, 2)
		}
		lost := c.ask(plain("/lost"))
		for range 18 {
			s.pass(500 * time.Millisecond)
			reader.does(ping())
			reader.does(syncAll())
			reader.does(there("/dying"))
		}
		if _, ok := s.Expiry(dying.session); ok {
			t.Error("the leader has not ended a session that was silent")
		}
		c.waits(lost)
		s.leads(2)
		s.passTo(14200 * time.Millisecond) // five ticks after its last ping, and an election
		s.leads(1)
		reader.does(syncAll())
		other := s.call("other", 0, nil, 40*time.Second)
		other.does(there("/dying"))
		other.wants(other.ask(there("/lost")), znode.CodeNoNode)
		other.does(plain("/new"))
		reader.wants(reader.ask(there("/new")), znode.CodeNoNode)
		s.passTo(16 * time.Second) // when the leader next counts the followers heard of within five ticks
		reader.connected(false)
		s.HealLinks()
		s.pass(200 * time.Millisecond)
		s.leads(1)
		late := s.call("late", 2, nil, 40*time.Second)
		late.wants(late.ask(there("/lost")), znode.CodeNoNode)
		late.does(there("/new"))
		late.does(there("/dying")) // its session has its whole timeout anew
	})
}

// A session ends while two proposals are outstanding: the deletion of its node, and the creation of
// another session's node at the same path. The new node stays.
func TestEndOfSessionSparesAnothersNode(t *testing.T) {
	onStage(t, func(s *stage) {
		ending, other := s.call("ending", 0, nil, 40*time.Second), s.call("other", 1, nil, 40*time.Second)
		ending.does(ephemeral("/e"))
		s.SetCommitDelay(time.Second)
		gone := ending.ask(remove(0, "/e", -1))
		s.pass(10 * time.Millisecond)
		made := other.ask(ephemeral("/e"))
		s.pass(10 * time.Millisecond)
		closed := ending.ask(say(0, OpClose, nil))
		s.pass(10 * time.Millisecond)
		for _, xid := range []int32{gone, closed} {
			ending.waits(xid)
		}
		s.SetCommitDelay(0)
		s.pass(3 * time.Second)
		ending.wants(gone, znode.CodeOK)
		other.wants(made, znode.CodeOK)
		other.does(there("/e"))
		if _, ok := s.Expiry(ending.session); ok {
			t.Error("the session has not ended")
		}
	})
}

// crowd makes ephemeral nodes so that the end of their session has so many bytes.
func (c *caller) crowd(size int) {
	c.s.t.Helper()
	size -= 48
	for i := 0; size > 0; i++ {
		n := min(size, 104) - 4
		if rest := size - n - 4; rest > 0 && rest < 10 {
			n -= 10
		}
		c.does(ephemeral(fmt.Sprintf("/%0*d", n-1, i)))
		size -= n + 4
	}
}

// smallEnsemble has three servers that read at most 8 kB of the end of a session. It may end up past help.
func smallEnsemble(t *testing.T) *stage {
	srv, err := New(Servers(3), MaxPacket(4096))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return newStage(t, srv)
}

// In an ensemble, each leader that ends the session stops serving, until no majority is left.
func TestSessionEndTooLongForEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := smallEnsemble(t)
		c := s.call("client", 0, nil, shortSession)
		c.crowd(2*4096 + 1)
		s.leads(2)
		c.write(codec.CloseFrame(c.xid + 1))
		s.pass(2 * tickOnStage)
		s.leads(1) // it has not seen the end of the session, and waits for the session to expire
		if s.failure(2) == nil || s.failure(1) != nil || s.failure(0) != nil {
			t.Errorf("failures: %v", s.failures())
		}
		s.call("second", 0, nil, 40*time.Second).does(there("/"))
		s.pass(20 * time.Second)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads", l)
		}
		if s.failure(2) == nil || s.failure(1) == nil || s.failure(0) != nil {
			t.Errorf("failures: %v", s.failures())
		}
		for i := range 3 {
			s.dials(fmt.Sprint("client of ", i), i, nil, shortSession).connected(false)
			s.StopServer(i)
			if err := s.StartServer(i); (err == nil) != (i == 0) {
				t.Errorf("server %d at its start: %v", i, err)
			}
		}
		s.pass(20 * time.Second)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads in the end", l)
		}
	})
}
