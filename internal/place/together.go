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

// Party is several acquisitions that begin together, of locks that are of one manager and in different directories.
// One goroutine uses it.
type Party []*Acquisition

// The limits of one transaction, so that its frame fits every server. Locks beyond them are left to
// another transaction.
const (
	maxTogether     = 64
	maxTogetherData = 64 << 10 // bytes of paths and data
)

// Fits reports whether an acquisition by a request of a queue can join. The error is that of a bad request.
func (p Party) Fits(q *Queue, r *Request) (bool, error) {
	if err := r.complete(); err != nil {
		return false, err
	}
	size := len(q.dir) + len(r.Data)
	for _, g := range p {
		size += len(g.q.dir) + len(g.r.Data)
	}
	return size <= maxTogetherData && len(p) < maxTogether, nil
}

// Enter calls the Acquire hooks, and makes one transaction after another until one has made the nodes, or it is clear
// that none will. When it returns nil, the acquisitions before the first that has to wait are granted, and that one has
// its place. The others have none: see HasPlace. If it returns an error, the caller calls GiveUp.
func (p Party) Enter(ctx context.Context) error {
	for _, g := range p {
		if err := g.Open(g.r, g.how.Try); err != nil {
			return err
		}
		if g.r.Data == nil {
			g.r.Data = g.r.describe(g.ctx, g.q.hooks()).Encode()
		}
	}
	if err := p.enter(ctx); err != nil {
		return Failed("acquire", p.paths(), err)
	}
	return nil
}

// HasPlace reports whether the acquisition has a place, granted or not.
func (g *Acquisition) HasPlace() bool { return g.stands != nil }

// Take returns the lease once it is granted.
func (g *Acquisition) Take() (*Lease, error) {
	if err := g.Granted(); err != nil {
		return nil, err
	}
	return g.hold(), nil
}

// paths returns the paths of the locks, for messages.
func (p Party) paths() string {
	var all []string
	for _, g := range p {
		all = append(all, g.q.dir)
	}
	return strings.Join(all, ", ")
}

func (p Party) enter(ctx context.Context) error {
	q := p[0].q
	pace := q.newPace()
	for {
		s, err := q.m.Session(ctx)
		if err != nil {
			return err
		}
		if err = p.attempt(ctx, s); err == nil {
			return nil
		}
		if refused := p.giveUp(ctx); errors.Is(refused, errRefused) {
			return Joined(err, refused)
		}
		switch {
		case errors.Is(err, core.ErrLost), errors.Is(err, errPartly):
			for _, g := range p {
				traceRetry(g.ctx, q.hooks(), opAcquire, g.Result.Attempts, err)
			}
		case ctx.Err() != nil, errors.Is(err, errRefused), errors.Is(err, ErrBusy),
			errors.Is(err, core.ErrTooManyNodes), errors.Is(err, core.ErrClosed):
			return err
		default:
			// The server has refused the transaction, because of one of the locks. Each lock by
			// itself tells what is wrong with it.
			return nil
		}
		// If the session has ended, waiting for the next one is enough.
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return err
		}
	}
}

// attempt makes the nodes of all, and decides for each by its listing. Those that may go are
// granted, up to the first that may not. The nodes behind that one are given up.
func (p Party) attempt(ctx context.Context, s *core.Session) error {
	all := make(entrants, len(p))
	for i, g := range p {
		g.stands = g.attemptIn(s)
		all[i] = entrant{g.stands, g.ctx}
	}
	if err := all.enter(ctx); err != nil {
		for _, g := range p {
			g.Result.Position = g.stands.position
		}
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
	for i, g := range p {
		a := g.stands
		g.Result.Position = a.position
		if !a.isFree() {
			return p[i+1:].giveUp(ctx)
		}
		in, err := a.free() // the clock comes last
		if err != nil {
			return err
		}
		a.must(in)
	}
	return nil
}

// isFree reports whether nothing is in the way, by the listing that the attempt has entered with.
func (a *attempt) isFree() bool { return a.failed == nil && !a.outdated && a.ahead.MayGo() }

// errRefused says that a server refuses to remove a node that has to be given up.
var errRefused = errors.New("zookeeper refuses to remove a node")

// GiveUp removes the nodes of all, and waits until the servers have confirmed that, or ctx ends. It returns what a
// server refuses.
func (p Party) GiveUp(ctx context.Context) error {
	if err := p.giveUp(ctx); errors.Is(err, errRefused) {
		return err
	}
	return nil
}

// giveUp is GiveUp, and returns the error of the session or of ctx if that ends first. The removal goes on then.
func (p Party) giveUp(ctx context.Context) error {
	var err error
	for _, r := range p.startGivingUp(ctx) {
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
func (p Party) startGivingUp(ctx context.Context) (removals []*core.Removal) {
	var with parting
	defer with.start(ctx)
	for _, g := range slices.Backward(p) {
		if r := g.giveUp(&with); r != nil {
			removals = append(removals, r)
		}
	}
	return removals
}

// giveUp starts the removal of the node. It returns nil if there is none, or if the create has not
// been answered. In that case ctx or the session has ended, and nobody waits for the removal.
func (g *Acquisition) giveUp(with *parting) *core.Removal {
	a := g.stands
	g.stands = nil
	if a == nil || !a.created() {
		return nil
	}
	if !a.quiet() {
		a.quit(g.ctx, context.Canceled)
		return nil
	}
	a.step(decide.Quit)
	if !a.mayStand() {
		a.giveBack()
		return nil
	}
	return a.removeBy(g.ctx, with.remover(a.s))
}

// Joined returns err with the refusal that followed it, if there was one.
func Joined(err, refused error) error {
	if refused == nil {
		return err
	}
	return fmt.Errorf("%w; rolled back: %w", err, refused)
}
