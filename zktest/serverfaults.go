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

// DeleteNode deletes a node and waits until that is committed, as an operator might do. It ignores the
// node's owner and ACL. It returns an error if the node does not exist, has children, or is one of
// ZooKeeper's own. In an ensemble it also returns an error if no server leads, or if the leader
// stops leading before the deletion is committed.
func (s *Server) DeleteNode(path string) error {
	s.made()
	err := s.state.DeleteNode(path)
	if err != nil && !errors.Is(err, quorum.ErrClosed) {
		err = fmt.Errorf("zktest: delete %s: %w", path, err)
	}
	return err
}

// SetSequence sets the number that the next sequential node under path gets. Use it to test what
// happens when the counter, a signed 32-bit number, is used up: as in ZooKeeper, it stays at
// 2147483647. It is an error if the node does not exist, or the number is negative. In an ensemble,
// no write should be in flight.
func (s *Server) SetSequence(path string, next int32) error {
	s.made()
	var failed error
	err := s.state.Do(context.Background(), func(st *quorum.State) { failed = st.SetSequence(path, next) })
	if err == nil && failed != nil {
		err = fmt.Errorf("zktest: set the sequence of %s: %w", path, failed)
	}
	return err
}

// ReapContainers has the leader delete the container nodes that have become empty, and the TTL nodes
// whose time is over, without waiting for the check that does this ([ContainerCheck]). It
// returns how many it has deleted. A container that becomes empty because of that is deleted by the
// next call. After Close, or while no server leads, ReapContainers does nothing.
func (s *Server) ReapContainers() int {
	s.made()
	reaped := 0
	s.with(func(st *quorum.State) { reaped = st.Reap() })
	return reaped
}

// Lag gives a session a replica of its own that stays this many transactions behind, as ZooKeeper
// permits of a follower. The session's reads and watch events are that old. A write of the session
// brings the replica up to that write before the write is answered. A sync brings it up to the state of the
// session's server.
// The replica never goes back. It applies every transaction that is five ticks old
// ([SyncLimit]), because a real follower that is further behind is dropped from its ensemble. In
// an ensemble the replica is never ahead of the server that the session is connected to.
//
// The replica stays with the session when it reconnects. A lag of 0 has it catch up. It is an error
// if there is no such session.
func (s *Server) Lag(session int64, transactions int) error {
	s.made()
	var failed error
	err := s.state.Do(context.Background(), func(st *quorum.State) { failed = st.SetLag(session, max(transactions, 0)) })
	if failed != nil {
		return failed
	}
	return err
}
