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

// ExpireHolder is [Proxy.ExpireHolder].
func (s *Server) ExpireHolder(ctx context.Context, path string) error {
	s.made()
	misuse.Context(ctx, "zktest: Server.ExpireHolder")
	return s.faults.ExpireHolder(ctx, path)
}

// WaitFree is [Proxy.WaitFree].
func (s *Server) WaitFree(ctx context.Context, path string) error {
	s.made()
	misuse.Context(ctx, "zktest: Server.WaitFree")
	return s.faults.WaitFree(ctx, path)
}

// DeleteNode deletes a node and waits until that is committed, as an operator might do. It ignores the node's owner and
// ACL. It returns an error if the node does not exist, has children, or is one of ZooKeeper's own. In an ensemble it
// also returns an error if no server leads, or if the leader stops leading before the deletion is committed.
func (s *Server) DeleteNode(path string) error {
	s.made()
	err := s.state.DeleteNode(path)
	if err != nil && !errors.Is(err, quorum.ErrClosed) {
		err = fmt.Errorf("zktest: delete %s: %w", path, err)
	}
	return err
}
