package hold

import (
	"context"
	"slices"

	"github.com/turnstile-go/turnstile/internal/place"
)

// Party is the acquisitions of several locks that begin together: see package place. Its leases are fetched in order,
// one by one. One goroutine uses it, and calls Leave in the end.
type Party struct {
	try     bool
	members []*member // whose leases have not been fetched yet
}

// member is the acquisition of one of the locks.
type member struct {
	*place.Acquisition
	local  *Local // nil for a place of its own
	trying bool   // the Local is trying, for this member
}

// Together begins to acquire the first of the given locks, which are of one manager and in different
// directories. It takes as many as are fit for one transaction. If these are fewer than two, the party
// is empty, and the first lock has to be acquired by itself. With try the acquisitions are those of
// TryAcquire. They look at all of the given locks first, in one flight, also at those that are left.
//
// The locks are granted up to the first that has to wait, which keeps its place. What lies behind that is
// given up, which the servers have confirmed when Together returns.
//
// If Together returns an error, it has given up all of them. Otherwise the caller fetches the leases
// with Next, and calls Leave when it wants no more.
func Together(ctx context.Context, locks []*Lock, try bool) (*Party, error) {
	p := &Party{try: try}
	err := p.gather(ctx, locks)
	if err == nil && try {
		err = p.look(ctx, locks)
	}
	if err == nil && len(p.members) > 0 {
		err = p.all().Enter(ctx)
	}
	if err != nil {
		return nil, place.Joined(err, p.Leave(ctx, err))
	}
	for _, m := range p.members {
		if !m.HasPlace() {
			m.stopTrying()
		}
	}
	return p, nil
}

// Len returns how many leases Next has still to return.
func (p *Party) Len() int { return len(p.members) }

// all returns the acquisitions.
func (p *Party) all() (all place.Party) {
	for _, m := range p.members {
		all = append(all, m.Acquisition)
	}
	return all
}

// gather takes the first of the locks. A Local that is in use or keeps its place, and one of readers, has
// a queue of its own, and ends the party before it, as a lock does that is taken alone.
func (p *Party) gather(ctx context.Context, locks []*Lock) error {
	for _, one := range locks {
		if one.Alone != nil {
			break
		}
		r, how := one.asks(), place.Entry{Try: p.try}
		fits, err := p.all().Fits(one.Queue, &r)
		if err != nil {
			return err
		}
		if fits && one.Local != nil {
			how.Lazy, fits = one.Local.startTrying()
		}
		if !fits {
			break
		}
		p.members = append(p.members, &member{one.Queue.Acquisition(ctx, &r, &how), one.Local, one.Local != nil})
	}
	if len(p.members) == 1 {
		p.members[0].stopTrying()
		p.members = nil
	}
	return nil
}

// look has the first member look at the locks too that are not in the party. If there is no party, it looks at
// all of them itself.
func (p *Party) look(ctx context.Context, locks []*Lock) error {
	var asks []place.Ask
	for _, one := range locks[len(p.members):] {
		asks = append(asks, one.looksAt()...)
	}
	switch {
	case len(p.members) > 0:
		p.members[0].LooksAlso(asks)
	case len(locks) > 1: // one looks by itself
		return place.LookAt(ctx, asks)
	}
	return nil
}

func (m *member) stopTrying() {
	if m.trying {
		m.trying = false
		m.local.stopTrying()
	}
}

// Next returns the lease of the first lock that was not fetched. It returns at once if the lock was
// granted with the others. Otherwise it waits.
func (p *Party) Next() (*place.Lease, error) {
	m := p.members[0]
	p.members = slices.Delete(p.members, 0, 1) // which forgets m, and the listing that its acquisition has read
	defer m.Cut()
	l, err := m.take()
	return m.Conclude(l, err)
}

func (m *member) take() (*place.Lease, error) {
	switch {
	case m.local == nil:
		return m.Take()
	case m.trying:
		m.trying = false
		return m.local.try(m.Acquisition)
	}
	return m.local.get(m.Acquiring, m.Tries())
}

// Leave gives up the locks that were not fetched. It waits until the servers have confirmed that, or
// ctx ends. It returns what a server refuses. why is for hooks.
func (p *Party) Leave(ctx context.Context, why error) error {
	refused := p.all().GiveUp(ctx)
	for _, m := range p.members {
		m.stopTrying()
	}
	for _, m := range slices.Backward(p.members) {
		_, _ = m.Conclude(nil, why)
	}
	p.members = nil
	return refused
}
