package zktest

import (
	"context"
	"fmt"
	"time"
)

// CutBefore is [Proxy.CutBefore].
func (s *Server) CutBefore(m Match) *Fault { return s.faults.CutBefore(m) }

// CutAfterCommit is [Proxy.CutAfterCommit].
func (s *Server) CutAfterCommit(m Match) *Fault { return s.faults.CutAfterCommit(m) }

// HoldRequest is [Proxy.HoldRequest].
func (s *Server) HoldRequest(m Match) *Fault { return s.faults.HoldRequest(m) }

// HoldReply is [Proxy.HoldReply].
func (s *Server) HoldReply(m Match) *Fault { return s.faults.HoldReply(m) }

// Blackhole is [Proxy.Blackhole].
func (s *Server) Blackhole(d Direction) { s.faults.Blackhole(d) }

// Heal is [Proxy.Heal].
func (s *Server) Heal() { s.faults.Heal() }

// Delay is [Proxy.Delay].
func (s *Server) Delay(d time.Duration) { s.faults.Delay(d) }

// Refuse is [Proxy.Refuse].
func (s *Server) Refuse(refuse bool) { s.faults.Refuse(refuse) }

// Disconnect is [Proxy.Disconnect].
func (s *Server) Disconnect() { s.faults.Disconnect() }

// Sessions is [Proxy.Sessions].
func (s *Server) Sessions() []int64 { return s.faults.Sessions() }

// Requests is [Proxy.Requests].
func (s *Server) Requests() []Request { return s.faults.Requests() }

// ResetRequests is [Proxy.ResetRequests].
func (s *Server) ResetRequests() { s.faults.ResetRequests() }

// Count is [Proxy.Count].
func (s *Server) Count(m Match) int { return s.faults.Count(m) }

// Expire is [Proxy.Expire].
func (s *Server) Expire(ctx context.Context, session int64) error {
	return s.faults.Expire(ctx, session)
}

// expire is how the faults' Expire ends the session.
func (s *Server) expire(ctx context.Context, session int64, _ []byte) error {
	return s.do(ctx, func(st *state) { st.endSession(session) })
}

// DeleteNode deletes a node, whoever owns it, as an operator might with an
// identity that may do anything. It returns an error if the node does not exist,
// has children, or is one of ZooKeeper's own.
func (s *Server) DeleteNode(path string) error {
	var failed error
	err := s.do(context.Background(), func(st *state) {
		n, ok := st.main.tree.nodes[path]
		switch {
		case special(path) || path == "":
			failed = codeBadArguments
		case !ok:
			failed = codeNoNode
		case len(n.children) > 0:
			failed = codeNotEmpty
		default:
			st.commit([]change{{op: OpDelete, path: path}})
		}
	})
	if failed != nil {
		err = fmt.Errorf("zktest: delete %s: %w", path, failed)
	}
	return err
}

// SetSequence sets the number that the next sequential node under path will
// have: for what happens when the counter, a signed 32-bit one, is used up. Past
// 2147483647 it stands still, as ZooKeeper's does. It is an error if the node
// does not exist, or the number is negative.
func (s *Server) SetSequence(path string, next int32) error {
	failed := error(codeNoNode)
	err := s.do(context.Background(), func(st *state) {
		if next < 0 {
			failed = codeBadArguments
			return
		}
		for _, m := range st.members() {
			m.catchUp(st.zxid) // numbers given so far are below the new one
			if n, ok := m.tree.nodes[path]; ok {
				n.stat.cversion = next
				failed = nil
			}
		}
	})
	if err == nil && failed != nil {
		err = fmt.Errorf("zktest: set the sequence of %s: %w", path, failed)
	}
	return err
}

// ReapContainers deletes, now, the container nodes that have become empty and
// the TTL nodes whose time is over, and returns how many. A container whose
// parent becomes an empty one with it takes one call more. After Close it does
// nothing.
func (s *Server) ReapContainers() int {
	reaped := 0
	_ = s.do(context.Background(), func(st *state) { reaped = st.reap() })
	return reaped
}

// Lag puts a session on a follower of its own that stays so many transactions
// behind, as ZooKeeper permits: what the session reads, and the events of its
// watches, are that old. Its own writes bring the follower up to them before
// they are answered, and so does sync; it never goes back. What has been
// committed for five ticks, at which a real follower would be dropped from its
// ensemble, the follower has too. It stays with the session over reconnections;
// a lag of 0 has it catch up. It is an error if there is no such session.
func (s *Server) Lag(session int64, transactions int) error {
	var failed error
	err := s.do(context.Background(), func(st *state) {
		owner, ok := st.sessions[session]
		if !ok {
			failed = fmt.Errorf("zktest: no session %#x", session)
			return
		}
		st.lag(owner, max(transactions, 0))
	})
	if failed != nil {
		return failed
	}
	return err
}

// lag gives a session its own member, from the present state on.
func (st *state) lag(s *clientSession, transactions int) {
	if s.own == nil {
		s.own = newMember(st.main.tree.clone())
		if s.peer != nil {
			s.peer.moveTo(s.own)
		}
	}
	s.own.lag = transactions
	for len(s.own.behind) > transactions {
		s.own.step()
	}
}

// moveTo takes a client and its watches to another member, in the same state.
func (p *peer) moveTo(to *member) {
	from := p.member
	move := func(a, b *watchTable) {
		for path := range a.byPeer[p] {
			b.add(path, p, a.byPath[path][p])
		}
		a.drop(p)
	}
	move(from.data, to.data)
	move(from.children, to.children)
	p.member = to
}
