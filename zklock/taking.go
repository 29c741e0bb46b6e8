package zklock

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
)

// taking takes the locks of a MultiLock, in order. Neighbours begin with one transaction, once all locks before
// them are held. So the order of the locks is kept also where some of them have to be taken by themselves. Each lock is in
// one transaction at most.
type taking struct {
	locks []*hold.Lock
	try   bool
	tried int // the locks before this index have been in a transaction, or have been taken
	party *hold.Party
}

// next takes the lock with an index. The caller has those before it.
func (t *taking) next(ctx context.Context, i int) (*place.Lease, error) {
	if i >= t.tried {
		party, err := hold.Together(ctx, t.locks[i:], t.try)
		if err != nil {
			return nil, err
		}
		t.party, t.tried = party, i+max(1, party.Len())
	}
	switch {
	case t.party.Len() > 0:
		return t.party.Next()
	case t.try:
		return t.locks[i].TryAcquire(ctx)
	}
	return t.locks[i].Acquire(ctx)
}

// leave gives up the locks that were not returned, and returns what a server refuses to remove.
func (t *taking) leave(ctx context.Context, why error) error {
	if t.party == nil {
		return nil
	}
	return t.party.Leave(ctx, why)
}
