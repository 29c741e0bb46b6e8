package zktest

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

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
