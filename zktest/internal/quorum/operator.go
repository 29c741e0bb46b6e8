package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// Expire ends a session as if it had timed out. It waits until a server leads and has committed the end of the session.
func (st *State) Expire(ctx context.Context, session int64) error {
	for {
		err := st.operate(ctx, func(l *leadership) (*proposal, error) {
			if l.tracker.sessions[session] == nil {
				return nil, nil // it is over already
			}
			return l.endSession(session), nil
		})
		if !errors.Is(err, ErrNoLeader) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-st.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// DeleteNode deletes a node and waits until that is committed. It ignores the node's owner and ACL.
func (st *State) DeleteNode(path string) error {
	return st.operate(context.Background(), func(l *leadership) (*proposal, error) {
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
}

// SetSequence sets the number of the next sequential node under path.
func (st *State) SetSequence(path string, next int32) error {
	if next < 0 {
		return znode.CodeBadArguments
	}
	failed := error(znode.CodeNoNode)
	for _, m := range st.members {
		if n, ok := m.tree.Nodes[path]; ok {
			n.Stat.Cversion = next
			failed = nil
		}
	}
	if l := st.authority(); l != nil && l.ahead[path] != nil {
		l.ahead[path].Stat.Cversion = next
	}
	return failed
}

// Reap has the leader delete empty containers and expired nodes now, and returns how many. It does
// nothing if no server leads.
func (st *State) Reap() int {
	if l := st.acting(); l != nil {
		return l.reap()
	}
	return 0
}

// ErrNoLeader says that no server leads that could change something.
var ErrNoLeader = errors.New("zktest: no server leads")

// acting returns the leader, or nil if there is none or it stands still.
func (st *State) acting() *leadership {
	if l := st.authority(); l != nil && !l.m.held {
		return l
	}
	return nil
}

// operate has the leader propose something, and waits until that is committed. It returns ErrNoLeader if
// there is no leader, or if the leader stops leading before that.
func (st *State) operate(ctx context.Context, propose func(*leadership) (*proposal, error)) error {
	failed := ErrNoLeader
	var committed chan struct{}
	var deposed <-chan struct{}
	if err := st.Do(ctx, func(st *State) {
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
		return ErrNoLeader
	case <-st.done:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
