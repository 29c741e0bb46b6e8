package zktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
)

// CutBefore is [Proxy.CutBefore].
func (s *Server) CutBefore(m Match) *Fault { return s.made().faults.CutBefore(m) }

// CutAfterCommit is [Proxy.CutAfterCommit].
func (s *Server) CutAfterCommit(m Match) *Fault { return s.made().faults.CutAfterCommit(m) }

// HoldRequest is [Proxy.HoldRequest].
func (s *Server) HoldRequest(m Match) *Fault { return s.made().faults.HoldRequest(m) }

// HoldReply is [Proxy.HoldReply].
func (s *Server) HoldReply(m Match) *Fault { return s.made().faults.HoldReply(m) }

// Blackhole is [Proxy.Blackhole].
func (s *Server) Blackhole(d Direction) { s.made().faults.Blackhole(d) }

// Heal is [Proxy.Heal].
func (s *Server) Heal() { s.made().faults.Heal() }

// Delay is [Proxy.Delay].
func (s *Server) Delay(d time.Duration) { s.made().faults.Delay(d) }

// Refuse is [Proxy.Refuse].
func (s *Server) Refuse(refuse bool) { s.made().faults.Refuse(refuse) }

// Disconnect is [Proxy.Disconnect].
func (s *Server) Disconnect() { s.made().faults.Disconnect() }

// Sessions is [Proxy.Sessions].
func (s *Server) Sessions() []int64 { return s.made().faults.Sessions() }

// Requests is [Proxy.Requests].
func (s *Server) Requests() []Request { return s.made().faults.Requests() }

// ResetRequests is [Proxy.ResetRequests].
func (s *Server) ResetRequests() { s.made().faults.ResetRequests() }

// Count is [Proxy.Count].
func (s *Server) Count(m Match) int { return s.made().faults.Count(m) }

// Expire is [Proxy.Expire].
func (s *Server) Expire(ctx context.Context, session int64) error {
	s.made()
	misuse.Context(ctx, "zktest: Server.Expire")
	return s.faults.Expire(ctx, session)
}

// DeleteNode deletes a node, whoever owns it, as an operator might with an
// identity that may do anything, and waits until that is committed. It returns
// an error if the node does not exist, has children, or is one of ZooKeeper's
// own; and in an ensemble, if no server leads, or the one that does leads no
// more before it is committed.
func (s *Server) DeleteNode(path string) error {
	s.made()
	err := s.state.DeleteNode(path)
	if err != nil && !errors.Is(err, quorum.ErrClosed) {
		err = fmt.Errorf("zktest: delete %s: %w", path, err)
	}
	return err
}

// SetSequence sets the number that the next sequential node under path will
// have: for what happens when the counter, a signed 32-bit one, is used up. Past
// 2147483647 it stands still, as ZooKeeper's does. It is an error if the node
// does not exist, or the number is negative. In an ensemble, no write should be
// under way.
func (s *Server) SetSequence(path string, next int32) error {
	s.made()
	var failed error
	err := s.state.Do(context.Background(), func(st *quorum.State) { failed = st.SetSequence(path, next) })
	if err == nil && failed != nil {
		err = fmt.Errorf("zktest: set the sequence of %s: %w", path, failed)
	}
	return err
}

// ReapContainers has the leader delete, now, the container nodes that have become
// empty and the TTL nodes whose time is over, and returns how many. A container
// whose parent becomes an empty one with it takes one call more. After Close, or
// while no server leads, it does nothing.
func (s *Server) ReapContainers() int {
	s.made()
	reaped := 0
	s.with(func(st *quorum.State) { reaped = st.Reap() })
	return reaped
}

// Lag puts a session on a follower of its own that stays so many transactions
// behind, as ZooKeeper permits: what the session reads, and the events of its
// watches, are that old. Its own writes bring the follower up to them before
// they are answered, and so does sync; it never goes back. What has been
// committed for five ticks, at which a real follower would be dropped from its
// ensemble, the follower has too. It stays with the session over reconnections;
// a lag of 0 has it catch up. It is an error if there is no such session.
//
// In an ensemble the follower of its own is also never ahead of the server that
// the session is connected to.
func (s *Server) Lag(session int64, transactions int) error {
	s.made()
	var failed error
	err := s.state.Do(context.Background(), func(st *quorum.State) { failed = st.SetLag(session, max(transactions, 0)) })
	if failed != nil {
		return failed
	}
	return err
}
