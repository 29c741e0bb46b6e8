package zktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
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

// expire is how the faults' Expire ends the session. In an ensemble it waits
// until a server leads and the end of the session is committed.
func (s *Server) expire(ctx context.Context, session int64, _ []byte) error {
	for {
		err := s.operate(ctx, func(l *leadership) (*proposal, error) {
			if l.tracker.sessions[session] == nil {
				return nil, nil // it is over already
			}
			return l.endSession(session), nil
		})
		if !errors.Is(err, errNoLeader) {
			return err
		}
		if err := s.awaitLeader(ctx); err != nil {
			return err
		}
	}
}

// DeleteNode deletes a node, whoever owns it, as an operator might with an
// identity that may do anything, and waits until that is committed. It returns
// an error if the node does not exist, has children, or is one of ZooKeeper's
// own; and in an ensemble, if no server leads, or the one that does leads no
// more before it is committed.
func (s *Server) DeleteNode(path string) error {
	s.made()
	err := s.operate(context.Background(), func(l *leadership) (*proposal, error) {
		pr := l.preparation(&request{})
		n, err := pr.Look(path)
		switch {
		case znode.Reserved(path) || path == "":
			return nil, znode.CodeBadArguments
		case err != nil:
			return nil, err
		case n.Children > 0:
			return nil, znode.CodeNotEmpty
		}
		pr.Remove(path)
		return l.agree(pr, &txn{changes: pr.Changes}), nil
	})
	if err != nil && !errors.Is(err, errServerClosed) {
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
	failed := error(znode.CodeNoNode)
	err := s.do(context.Background(), func(st *state) {
		if next < 0 {
			failed = znode.CodeBadArguments
			return
		}
		for _, l := range st.slow() {
			l.catchUp(st.reach(l)) // numbers given so far are below the new one
		}
		for _, r := range st.replicas(st.members) {
			if n, ok := r.tree.Nodes[path]; ok {
				n.Stat.Cversion = next
				failed = nil
			}
		}
		if l := st.authority(); l != nil && l.ahead[path] != nil {
			l.ahead[path].Stat.Cversion = next
		}
	})
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
	_ = s.do(context.Background(), func(st *state) {
		if l := st.acting(); l != nil {
			reaped = l.reap()
		}
	})
	return reaped
}

// errNoLeader is why an operator can change nothing.
var errNoLeader = errors.New("zktest: no server leads")

// acting returns the leader that can be told to do something, or nil.
func (st *state) acting() *leadership {
	if l := st.authority(); l != nil && !l.m.held {
		return l
	}
	return nil
}

// operate has the leader propose something, and waits until that is committed.
// It returns errNoLeader if there is no leader, or no more before that.
func (s *Server) operate(ctx context.Context, propose func(*leadership) (*proposal, error)) error {
	failed := errNoLeader
	var committed chan struct{}
	var deposed <-chan struct{}
	if err := s.do(ctx, func(st *state) {
		l := st.acting()
		if l == nil {
			return
		}
		var p *proposal
		if p, failed = propose(l); p != nil {
			committed, deposed = make(chan struct{}), l.over
			p.then(func() { close(committed) })
		}
	}); err != nil {
		return err
	}
	if committed == nil {
		return failed
	}
	select {
	case <-committed:
		return nil
	default:
	}
	select {
	case <-committed:
		return nil
	case <-deposed:
		return errNoLeader
	case <-s.state.done:
		return errServerClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitLeader returns once a server leads.
func (s *Server) awaitLeader(ctx context.Context) error {
	for {
		var leads bool
		var changed <-chan struct{}
		if err := s.do(ctx, func(st *state) { leads, changed = st.acting() != nil, st.changed }); err != nil || leads {
			return err
		}
		select {
		case <-changed:
		case <-s.state.done:
			return errServerClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
