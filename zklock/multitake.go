package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

var errLostEarlier = errors.New("a lock was lost before the others were taken")

func (m *MultiLock) get(ctx context.Context, try bool) (multiHold, error) {
	if err := m.refuseOwner(ctx); err != nil {
		return multiHold{}, m.holds.Failed("acquire", err)
	}
	ctx, end := queue.BeginWait(ctx)
	for pace := rounds.NewPace(m.holds.Manager.Backoff()); ; {
		l, err := m.take(ctx, try)
		if !errors.Is(err, errLostEarlier) {
			return multiHold{l}, end(err)
		}
		if err := pace.Wait(ctx, m.holds.Manager.Done()); err != nil {
			return multiHold{}, end(m.holds.Failed("acquire", err))
		}
	}
}

func (m *MultiLock) refuseOwner(ctx context.Context) error {
	owner := queue.OwnerOf(ctx)
	for _, one := range m.locks {
		if held := one.HeldBy(owner); held != nil {
			if err := held.Err(); err != nil && !errors.Is(err, queue.ErrReleased) {
				return err // which it has to know first
			}
			return misuse.Invalidf("the owner of the context holds %s already", one.Path)
		}
	}
	return nil
}

// take takes all of the locks once, or none. Each wait ends when a lock that was taken is lost.
func (m *MultiLock) take(ctx context.Context, try bool) (*MultiLease, error) {
	l := &MultiLease{of: m}
	l.hold, l.endHold = context.WithCancelCause(context.Background())
	l.asked, l.ask = context.WithCancel(context.Background())
	inside, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.hold, func() { cancel(context.Cause(l.hold)) })()
	take := m.takeAtOnce
	if m.inOrder {
		take = m.takeInOrder
	}
	err := take(inside, l, try)
	if l.Err() != nil {
		err = errLostEarlier
	}
	if err != nil {
		_ = multiHold{l}.GiveUp(ctx)
		return nil, err
	}
	return l, nil
}

// takeInOrder is for places that goroutines share: two goroutines that take some of them at once, and give them up
// again, would neither keep nor hand over any. A try looks at all queues first.
func (m *MultiLock) takeInOrder(ctx context.Context, l *MultiLease, try bool) error {
	if try && len(m.locks) > 1 {
		var looks []share.Entry
		for _, one := range m.locks {
			if one.Gate != nil {
				looks = append(looks, one.Gate.Entry)
			}
			looks = append(looks, one.Entry)
		}
		if _, err := share.LookAll(ctx, looks...); err != nil {
			return m.holds.Failed("acquire", err)
		}
	}
	for _, one := range m.locks {
		lease, err := one.Acquire(ctx, try)
		if err != nil {
			return err
		}
		l.add(lease)
	}
	return nil
}

// takeAtOnce enters all queues in one flight. If anybody is in the way, it leaves them, and takes one lock after
// another: see [Multi]. A try looks at all queues first.
func (m *MultiLock) takeAtOnce(ctx context.Context, l *MultiLease, try bool) (err error) {
	var all entrants
	defer func() {
		for _, e := range all {
			if e.end != nil {
				e.err = err
				_, _ = e.finish()
			}
		}
	}()
	for _, one := range m.locks {
		e := &entrant{q: one.Queue, r: one.Request()}
		if e.ctx, e.end, err = one.Queue.StartAcquiring(ctx, &e.r, try); err != nil {
			return err
		}
		all = append(all, e)
	}
	how := queue.AtOnce
	if try {
		how = queue.TriesInside
		all.each(func(e *entrant) { e.effort, e.err = e.q.Look(e.ctx, e.r) })
		if e := all.failed(); e != nil {
			_, err = e.finish()
			return err
		}
	}
	all.each(func(e *entrant) { e.turn, e.effort, e.err = e.q.Begin(e.ctx, &e.r, how) })
	inOrder := false
	if e := all.failed(); e != nil {
		refused := all.leave(ctx)
		if refused != nil || try || !errors.Is(e.err, queue.ErrBusy) {
			if _, err = e.finish(); refused != nil {
				err = fmt.Errorf("%v; rolled back: %w", err, refused) //nolint:errorlint // busy says that nothing is left
			}
			return err
		}
		inOrder = true
	}
	for _, e := range all {
		if inOrder {
			before := e.effort.Attempts
			e.turn, e.effort, e.err = e.q.Begin(e.ctx, &e.r, queue.Waits)
			e.effort.Attempts += before
		}
		lease, err := e.finish()
		if err != nil {
			return err
		}
		l.add(lease)
	}
	return nil
}

type entrant struct {
	q   *queue.Queue
	r   queue.Request
	ctx context.Context // within the Acquire hook

	turn   *queue.Turn
	effort queue.Effort
	err    error
	end    func(*queue.Lease, queue.Effort, error) (*queue.Lease, error) // tells the hook; nil: it has
}

func (e *entrant) finish() (*queue.Lease, error) {
	end := e.end
	e.end = nil
	if e.err != nil {
		return end(nil, e.effort, e.err)
	}
	return end(e.turn.Lease(e.ctx, nil), e.effort, nil)
}

type entrants []*entrant

// each calls f for all at the same time, so that their requests leave in one flight.
func (all entrants) each(f func(e *entrant)) {
	var group sync.WaitGroup
	for _, e := range all {
		group.Go(func() { f(e) })
	}
	group.Wait()
}

// failed returns the first that has failed, also by a loss since. One that is busy counts only if no other has.
func (all entrants) failed() (first *entrant) {
	for _, e := range all {
		if e.turn != nil && e.turn.Err() != nil {
			e.err = errLostEarlier
		}
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

// leave removes what has entered, and waits for that as long as ctx allows: the next one should not find a node. It
// returns what servers refuse.
func (all entrants) leave(ctx context.Context) error {
	removals := make([]*session.Removal, len(all))
	for i, e := range all {
		if e.turn != nil {
			removals[i] = e.turn.Leave(e.ctx) // nil if it is lost
		}
	}
	var refused []error
	for i, removal := range removals {
		if removal == nil {
			continue
		}
		select {
		case <-removal.Done():
			if all[i].turn.Session().Err() == nil {
				refused = append(refused, removal.Err())
			}
		case <-ctx.Done():
		}
	}
	return share.Join(refused...)
}
