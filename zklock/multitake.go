package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// errLostEarlier says that a lock was lost during the wait for another.
var errLostEarlier = errors.New("a lock was lost before the others were taken")

// get takes all of the locks. It begins again if one is lost before all are taken.
func (m *MultiLock) get(ctx context.Context, try bool) (multiHold, error) {
	if err := m.refuseOwner(ctx); err != nil {
		return multiHold{}, m.acquiring(err)
	}
	ctx, end := queue.BeginWait(ctx)
	for pace := (&rounds.Pace{New: m.locks[0].Queue.Manager().BackOff}); ; {
		l, err := m.take(ctx, try)
		if !errors.Is(err, errLostEarlier) {
			return multiHold{l}, end(err)
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return multiHold{}, end(m.acquiring(err))
		}
	}
}

// acquiring adds the operation and the paths to an error.
func (m *MultiLock) acquiring(err error) error {
	return &queue.OpError{Op: "acquire", Path: m.paths, Err: err}
}

// refuseOwner returns an error if the owner of ctx holds one of the locks by itself, and would wait for its own Unlock.
func (m *MultiLock) refuseOwner(ctx context.Context) error {
	owner := queue.OwnerOf(ctx)
	for _, one := range m.locks {
		held := one.HeldBy(owner)
		if held == nil {
			continue
		}
		if err := held.Err(); err != nil && !errors.Is(err, queue.ErrReleased) {
			return err // the owner has to know this first
		}
		return misuse.Invalidf("the owner of the context holds %s already", one.Queue.Path())
	}
	return nil
}

// take takes all of the locks once: at once if nobody is in the way, and otherwise one after another, in order. So it never
// stands in a queue while it waits in an earlier one. Each wait ends when a lock that was taken is lost.
//
// Locks whose place goroutines share are taken in order from the beginning, unless it is a try: two goroutines that each take
// some of the places at once, and give them up again, would neither keep nor hand over any.
func (m *MultiLock) take(ctx context.Context, try bool) (*MultiLease, error) {
	l := newMultiLease(m.given, m.paths)
	inside, cancel := l.context(ctx)
	defer cancel()
	all, err := m.announce(inside, try)
	if err != nil {
		return nil, err
	}
	if err = queue.ErrBusy; try || len(all) > 1 && !all.someApart() {
		err = all.enterAtOnce(inside, try, l)
	}
	if !try && errors.Is(err, queue.ErrBusy) {
		err = all.takeInOrder(inside, l)
	}
	if l.Err() != nil {
		err = errLostEarlier
	}
	if err != nil {
		all.conclude(err)
		return nil, withRefusals(err, l.giveUp(ctx))
	}
	return l, nil
}

// entrant is the acquisition of one of the locks.
type entrant struct {
	member
	r   queue.Request
	ctx context.Context // within the Acquire hook

	// end tells the hook, once. It is nil if it has, or if the lock is taken by its own methods, which tell.
	end func(*queue.Lease, queue.Effort, error) (*queue.Lease, error)

	turn   *queue.Turn  // at once, of its node
	lease  *queue.Lease // at once, of a lock that is taken by its own methods
	effort queue.Effort
	err    error
}

// entrants are the acquisitions of all of the locks, in order.
type entrants []*entrant

// announce begins the acquisitions.
func (m *MultiLock) announce(ctx context.Context, try bool) (all entrants, err error) {
	for _, one := range m.locks {
		e := &entrant{member: one, r: one.Request, ctx: ctx, effort: queue.Effort{Position: -1}}
		if !one.Apart {
			if e.ctx, e.end, err = one.Queue.StartAcquiring(ctx, &e.r, try); err != nil {
				all.conclude(err)
				return nil, err
			}
		}
		all = append(all, e)
	}
	return all, nil
}

// conclude ends the acquisitions that have not ended.
func (all entrants) conclude(why error) {
	for _, e := range all {
		if e.end != nil {
			_, _ = e.end(nil, e.effort, why)
			e.end = nil
		}
	}
}

func (all entrants) someApart() bool {
	return slices.ContainsFunc(all, func(e *entrant) bool { return e.Apart })
}

// each calls f for all at the same time. So their requests leave in one flight.
func (all entrants) each(f func(e *entrant)) {
	var group sync.WaitGroup
	for _, e := range all {
		group.Go(func() { f(e) })
	}
	group.Wait()
}

// enterAtOnce enters all queues in one flight, and adds the leases to l if it may go everywhere. Otherwise it leaves nothing
// behind, and waits until the servers have confirmed that: a node that was still there would stand before the next one of
// this process, and keep out others. It returns an error that matches [queue.ErrBusy] if others are in the way. A try looks at
// all queues first, in one flight.
func (all entrants) enterAtOnce(ctx context.Context, try bool, l *MultiLease) error {
	if try {
		all.each(func(e *entrant) { e.err = e.look(e.ctx) })
		if e := all.failed(); e != nil {
			return e.fail()
		}
	}
	all.each(func(e *entrant) {
		if e.Apart {
			e.lease, e.err = e.TryAcquire(ctx)
			return
		}
		e.turn, e.effort, e.err = e.Queue.BeginAtOnce(e.ctx, &e.r, try)
	})
	if e := all.failed(); e != nil {
		refused := all.leave(ctx)
		if try || !errors.Is(e.err, queue.ErrBusy) {
			return withRefusals(e.fail(), refused)
		}
		return withRefusals(e.err, refused)
	}
	if slices.ContainsFunc(all, (*entrant).isLost) {
		return withRefusals(errLostEarlier, all.leave(ctx))
	}
	for _, e := range all {
		if e.lease == nil {
			e.lease = e.grant(e.turn)
		}
		l.add(e.lease)
	}
	return nil
}

// look looks at the queues of a lock that a try has to pass, in one flight.
func (e *entrant) look(ctx context.Context) error {
	effort, err := share.LookAll(ctx, append([]share.Look{{Queue: e.Queue, Request: e.Request}}, e.LookAlso...)...)
	if e.effort = effort; err != nil {
		return &queue.OpError{Op: "acquire", Path: e.Path(), Err: err}
	}
	return nil
}

// failed returns the first that has failed, but one that is busy only if no other has. It returns nil if none has failed.
func (all entrants) failed() (first *entrant) {
	for _, e := range all {
		switch {
		case e.err == nil:
		case !errors.Is(e.err, queue.ErrBusy):
			return e
		case first == nil:
			first = e
		}
	}
	return first
}

// isLost reports whether what was taken at once is lost by now.
func (e *entrant) isLost() bool {
	return e.turn != nil && e.turn.Err() != nil || e.lease != nil && e.lease.Err() != nil
}

// fail ends an acquisition that has failed. It returns the error for the caller.
func (e *entrant) fail() error {
	if e.end == nil {
		return e.err
	}
	_, err := e.end(nil, e.effort, e.err)
	e.end = nil
	return err
}

// grant ends an acquisition with its turn.
func (e *entrant) grant(t *queue.Turn) *queue.Lease {
	lease, _ := e.end(t.Lease(e.ctx, nil), e.effort, nil)
	e.end = nil
	return lease
}

// leave removes what has entered, the last first, and waits for that as long as ctx allows. It returns what servers refuse.
func (all entrants) leave(ctx context.Context) (refused []error) {
	var waits []func() error
	for _, e := range slices.Backward(all) {
		switch {
		case e.lease != nil:
			release := e.lease.StartGiveUp(e.ctx)
			waits = append(waits, func() error { return release.Wait(ctx) })
		case e.turn != nil:
			if removal := e.turn.Leave(e.ctx); removal != nil { // otherwise it is lost
				waits = append(waits, func() error { return outcome(ctx, removal) })
			}
		}
		e.turn, e.lease = nil, nil
	}
	for _, wait := range waits {
		refused = append(refused, wait())
	}
	return refused
}

// outcome waits for a removal as long as ctx allows, and returns its error.
func outcome(ctx context.Context, removal *session.Removal) error {
	select {
	case <-removal.Done():
		return removal.Err()
	case <-ctx.Done():
		return nil
	}
}

// takeInOrder takes one lock after another, and adds each to l.
func (all entrants) takeInOrder(ctx context.Context, l *MultiLease) error {
	for _, e := range all {
		var lease *queue.Lease
		if e.Apart {
			lease, e.err = e.Acquire(ctx)
		} else {
			var t *queue.Turn
			before := e.effort.Attempts
			t, e.effort, e.err = e.Queue.Begin(e.ctx, e.r, false, nil)
			if e.effort.Attempts += before; e.err == nil {
				lease = e.grant(t)
			}
		}
		if e.err != nil {
			return e.fail()
		}
		if l.add(lease); l.Err() != nil {
			return errLostEarlier
		}
	}
	return nil
}

// withRefusals returns err, joined with the errors of releases that are refusals. Such a refusal replaces [queue.ErrBusy],
// which says that nothing is left behind.
func withRefusals(err error, refused []error) error {
	refused = slices.DeleteFunc(refused, func(err error) bool {
		return err == nil || isPending(err) || errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed) ||
			errors.Is(err, queue.ErrReleased) // by a hook
	})
	switch {
	case len(refused) == 0:
		return err
	case errors.Is(err, queue.ErrBusy), errors.Is(err, errLostEarlier):
		return fmt.Errorf("%v; rolled back: %w", err, share.Join(refused...)) //nolint:errorlint // not busy: a refusal
	}
	return share.Join(append([]error{err}, refused...)...)
}
