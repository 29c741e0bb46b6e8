package zklock

import (
	"context"
	"slices"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/queue"
)

// taking takes the locks of a MultiLock, in order. Neighbours of one manager begin with one
// transaction, once all locks before them are held. So the order of the locks is kept also where
// locks of several managers, or of types that this module does not know, are mixed. Each lock is in one
// transaction at most.
type taking struct {
	m     *MultiLock
	try   bool
	tried int // the locks before this index have been in a transaction, or have been taken
	party *hold.Party
}

// next takes the lock with an index. The caller has those before it.
func (t *taking) next(ctx context.Context, i int) (*queue.Lease, error) {
	if i >= t.tried {
		party, err := hold.Together(ctx, t.neighbours(i), t.try)
		if err != nil {
			return nil, err
		}
		t.party, t.tried = party, i+max(1, party.Len())
	}
	switch {
	case t.party.Len() > 0:
		one, err := t.party.Next()
		return (*queue.Lease)(one), err
	case t.try:
		return t.m.locks[i].TryAcquire(ctx)
	}
	return t.m.locks[i].Acquire(ctx)
}

// neighbours returns the lock with an index, and those behind it that have the same manager. It returns none
// if the lock is to be taken by itself.
func (t *taking) neighbours(i int) []*hold.Lock {
	rest := t.m.joint[i:]
	n := 0
	for n < len(rest) && rest[n] != nil && rest[n].Queue.Manager() == rest[0].Queue.Manager() {
		n++
	}
	return rest[:n]
}

// inAdvance returns a context in which all of the locks are taken, for which there is room for all of their
// nodes.
func (m *MultiLock) inAdvance(ctx context.Context) (_ context.Context, end func()) {
	alone := func(l *hold.Lock) bool { return l == nil }
	return hold.InAdvance(ctx, slices.DeleteFunc(slices.Clone(m.joint), alone))
}

// leave gives up the locks that were not returned, and returns what a server refuses to remove.
func (t *taking) leave(ctx context.Context, why error) error {
	if t.party == nil {
		return nil
	}
	return t.party.Leave(ctx, why)
}

// abandon is leave without the wait.
func (t *taking) abandon(ctx context.Context) {
	if t.party != nil {
		t.party.Abandon(ctx)
	}
}
