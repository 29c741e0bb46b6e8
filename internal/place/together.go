package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
)

// Several locks of one manager are taken together. One transaction makes a node in each of their
// directories, and all directories are listed behind it. Then each attempt decides by its listing, as
// it does alone. If all may go, that is all.
//
// Otherwise the locks before the first that has to wait are kept, and so is the place in its queue.
// That is what taking the locks in order would have got. The nodes behind it are given up, and the
// wait begins once the servers have confirmed that. From there on the locks are taken in order. So
// nobody stands in a queue while waiting in an earlier one, except for the moment before the nodes
// are given up, which ends whatever others do. Hence no circle of waiters can arise as long as all take
// the locks in one order.

// Party is several acquisitions that begin together. Its leases are fetched in order, one by one. One
// goroutine uses it, and calls Leave or Abandon in the end.
type Party struct {
	try     bool
	members []*member // whose leases have not been fetched yet
}

// member is the acquisition of one of the locks.
type member struct {
	*Acquisition
	local  *Local   // nil for a place of its own
	a      *attempt // stands in the queue since the transaction; nil if the lock is to be taken by itself
	trying bool     // the Local is trying, for this member
	lazy   bool     // the place may be kept
}

// The limits of one transaction, so that its frame fits every server. Locks beyond them are left to
// another transaction.
const (
	maxTogether     = 64
	maxTogetherData = 64 << 10 // bytes of paths and data
)

// Together begins to acquire the first of the given locks, which are of one manager and in different
// directories. It takes as many as are fit for one transaction. If these are fewer than two, the party
// is empty, and the first lock has to be acquired by itself. With try the acquisitions are those of
// TryAcquire.
//
// The locks are granted up to the first that has to wait, which keeps its place. What lies behind that is
// given up, which the servers have confirmed when Together returns.
//
// If Together returns an error, it has given up all of them. Otherwise the caller fetches the leases
// with Next, and calls Leave when it wants no more.
func Together(ctx context.Context, locks []*Lock, try bool) (*Party, error) {
	p := &Party{try: try}
	err := p.gather(ctx, locks)
	if err == nil {
		err = p.begin()
	}
	if err == nil && len(p.members) > 0 {
		if err = p.enter(ctx); err != nil {
			err = Failed("acquire", p.paths(), err)
		}
	}
	if err != nil {
		return nil, joined(err, p.Leave(ctx, err))
	}
	return p, nil
}

// Len returns how many leases Next has still to return.
func (p *Party) Len() int { return len(p.members) }

// gather takes the first of the locks. A Local that is in use or keeps its place, and one of readers, has
// a queue of its own, and ends the party before it, as an unfair lock does.
func (p *Party) gather(ctx context.Context, locks []*Lock) error {
	size := 0
	for _, one := range locks {
		r := one.asks()
		if err := r.complete(); err != nil {
			return err
		}
		size += len(one.Queue.dir) + len(r.Data)
		if r.Kind.Unfair || size > maxTogetherData || len(p.members) == maxTogether {
			break
		}
		m := &member{Acquisition: one.Queue.acquisition(ctx, &r, &entry{try: p.try}), local: one.Local}
		if one.Local != nil {
			if m.lazy, m.trying = one.Local.startTrying(); !m.trying {
				break
			}
		}
		p.members = append(p.members, m)
	}
	if len(p.members) == 1 {
		p.members[0].stopTrying()
		p.members = nil
	}
	return nil
}

// paths returns the paths of the locks, for messages.
func (p *Party) paths() string {
	var all []string
	for _, m := range p.members {
		all = append(all, m.q.dir)
	}
	return strings.Join(all, ", ")
}

// begin calls the Acquire hook of each member.
func (p *Party) begin() error {
	for _, m := range p.members {
		if err := m.begin(m.r, p.try); err != nil {
			return err
		}
		if m.r.Data == nil {
			m.r.Data = m.r.describe(m.ctx, m.q.hooks()).Encode()
		}
	}
	return nil
}

// enter makes one transaction after another until one has made the nodes, or it is clear that none
// will. When it returns nil, the members up to the first that has to wait have attempts.
func (p *Party) enter(ctx context.Context) error {
	q := p.members[0].q
	pace := q.newPace()
	for {
		s, err := q.m.Session(ctx)
		if err != nil {
			return err
		}
		if err = p.attempt(ctx, s); err == nil {
			return nil
		}
		if refused := p.giveUp(ctx, 0); errors.Is(refused, errRefused) {
			return joined(err, refused)
		}
		switch {
		case errors.Is(err, core.ErrLost), errors.Is(err, errPartly):
			for _, m := range p.members {
				traceRetry(m.ctx, q.hooks(), opAcquire, m.result.Attempts, err)
			}
		case ctx.Err() != nil, errors.Is(err, errRefused), errors.Is(err, ErrBusy),
			errors.Is(err, core.ErrTooManyNodes), errors.Is(err, core.ErrClosed):
			return err
		default:
			// The server has refused the transaction, because of one of the locks. Each lock by
			// itself tells what is wrong with it.
			p.stopTrying(0)
			return nil
		}
		// If the session has ended, waiting for the next one is enough.
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return err
		}
	}
}

// attempt makes the nodes of all members, and decides for each by its listing. Those that may go are
// granted, up to the first that may not. The nodes behind that one are given up.
func (p *Party) attempt(ctx context.Context, s *core.Session) error {
	all := make(entrants, len(p.members))
	for i, m := range p.members {
		m.q.yield(s, m.r)
		m.result.Attempts++
		m.a = newAttempt(m.q, s, m.r, &entry{try: p.try, lazy: m.lazy})
		all[i] = entrant{m.a, m.ctx}
	}
	if err := all.enter(ctx); err != nil {
		return err
	}
	all.each(func(a entrant) error {
		if a.failed == nil {
			a.ahead, a.failed = a.decide(a.ctx, a.names)
		}
		return a.failed
	})
	if err := cmp.Or(ctx.Err(), s.Err()); err != nil {
		return err
	}
	for i, m := range p.members {
		m.result.Position = m.a.position
		if !m.a.isFree() {
			if err := p.giveUp(ctx, i+1); err != nil {
				return err
			}
			p.stopTrying(i + 1)
			return nil
		}
		in, err := m.a.free() // the clock comes last
		if err != nil {
			return err
		}
		m.a.must(in)
	}
	return nil
}

// isFree reports whether nothing is in the way, by the listing that the attempt has entered with.
func (a *attempt) isFree() bool { return a.failed == nil && !a.outdated && a.ahead.MayGo() }

// errRefused says that a server refuses to remove a node that has to be given up.
var errRefused = errors.New("zookeeper refuses to remove a node")

// giveUp removes the nodes of the members from an index on, and waits until the servers have
// confirmed that. It returns what a server refuses, or the error of the session or of ctx if that ends
// first. The removal goes on then.
func (p *Party) giveUp(ctx context.Context, from int) error {
	var err error
	for _, r := range p.startGivingUp(ctx, from) {
		select {
		case <-r.Done():
			if e := r.Err(); e != nil {
				err = e
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err == nil || errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", errRefused, err)
}

// startGivingUp starts the removals, that of the last node first.
func (p *Party) startGivingUp(ctx context.Context, from int) (removals []*core.Removal) {
	var with parting
	defer with.start(ctx)
	for _, m := range slices.Backward(p.members[from:]) {
		if r := m.giveUp(&with); r != nil {
			removals = append(removals, r)
		}
	}
	return removals
}

// giveUp starts the removal of the node. It returns nil if there is none, or if the create has not
// been answered. In that case ctx or the session has ended, and nobody waits for the removal.
func (m *member) giveUp(with *parting) *core.Removal {
	a := m.a
	m.a = nil
	if a == nil || !a.created() {
		return nil
	}
	if !a.quiet() {
		a.quit(m.ctx, context.Canceled)
		return nil
	}
	a.step(decide.Quit)
	if !a.mayStand() {
		a.giveBack()
		return nil
	}
	return a.removeBy(m.ctx, with.remover(a.s))
}

func (p *Party) stopTrying(from int) {
	for _, m := range p.members[from:] {
		m.stopTrying()
	}
}

func (m *member) stopTrying() {
	if m.trying {
		m.trying = false
		m.local.stopTrying()
	}
}

// Next returns the lease of the first lock that was not fetched. It returns at once if the lock was
// granted with the others. Otherwise it waits.
func (p *Party) Next() (*Lease, error) {
	m := p.members[0]
	p.members = p.members[1:]
	defer m.cut()
	l, err := m.take(p.try)
	return m.conclude(l, err)
}

func (m *member) take(try bool) (*Lease, error) {
	a, trying := m.a, m.trying
	m.a, m.trying = nil, false
	granted := a != nil && a.is() == decide.Holding
	switch {
	case m.local == nil && granted:
		return a.hold(m.ctx), nil
	case m.local == nil:
		a, err := m.with(a).granted()
		if err != nil {
			return nil, err
		}
		return a.hold(m.ctx), nil
	case trying && granted:
		return m.local.hold(m.ctx, a).begin(m.ctx), nil
	case trying && try:
		return m.local.try(m.local.trial(m.acquiring, true, m.lazy).with(a))
	case trying:
		return m.local.await(m.acquiring, m.local.goOn(m.ctx, a, m.result.Attempts))
	}
	return m.local.get(m.acquiring, try)
}

// Leave gives up the locks that were not fetched. It waits until the servers have confirmed that, or
// ctx ends. It returns what a server refuses. why is for hooks.
func (p *Party) Leave(ctx context.Context, why error) error {
	err := p.giveUp(ctx, 0)
	p.stopTrying(0)
	for _, m := range slices.Backward(p.members) {
		_, _ = m.conclude(nil, why)
	}
	p.members = nil
	if errors.Is(err, errRefused) {
		return err
	}
	return nil
}

// Abandon is Leave without the wait.
func (p *Party) Abandon(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_ = p.Leave(ctx, errCut)
}

// joined returns err with the refusal that followed it, if there was one.
func joined(err, refused error) error {
	if refused == nil {
		return err
	}
	return fmt.Errorf("%w; rolled back: %w", err, refused)
}
