package place

import (
	"context"
	"time"
)

// Acquire is Acquire of a Queue by way of the local queue.
func (l *Local) Acquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, false) }

// TryAcquire is TryAcquire of a Queue. It sends no request while somebody in this process holds or waits,
// unless readers hold.
func (l *Local) TryAcquire(ctx context.Context) (*Lease, error) { return l.acquire(ctx, true) }

func (l *Local) acquire(ctx context.Context, try bool) (*Lease, error) {
	c := newAcquiring(ctx, l.q)
	if err := c.begin(&l.r, try); err != nil {
		return nil, err
	}
	defer c.cut()
	lease, err := l.get(c, try)
	return c.conclude(lease, err)
}

// await waits for the grant of a waiter.
func (l *Local) await(c *acquiring, w *waiter) (*Lease, error) {
	var g grant
	select {
	case g = <-w.got:
	case <-c.ctx.Done():
		why := l.why(w, time.Now())
		if l.withdraw(w) {
			why.Err = c.ctx.Err()
			return nil, &why
		}
		g = <-w.got // does not block for long: its grant is on the way
	}
	c.result = g.result
	if g.err != nil {
		return nil, g.err
	}
	return g.turn.begin(c.ctx), nil
}

// get is Acquire or TryAcquire without the Acquire hook.
func (l *Local) get(c *acquiring, try bool) (*Lease, error) {
	if !try {
		t, w, lazy, err := l.join(c.ctx)
		switch {
		case err != nil:
			return nil, err
		case t != nil:
			return t.begin(c.ctx), nil
		case w != nil:
			return l.await(c, w)
		}
		return l.try(l.trial(c, false, lazy))
	}
	if t := l.take(); t != nil {
		return t.begin(c.ctx), nil
	}
	if l.many {
		return l.tryShared(c)
	}
	lazy, ok := l.startTrying()
	if !ok {
		return nil, ErrBusy
	}
	return l.try(l.trial(c, true, lazy))
}

// trial returns the acquisition of a caller that contends by itself.
func (l *Local) trial(c *acquiring, try, lazy bool) *Acquisition {
	return c.acquisition(l.request(), &entry{try: try, lazy: lazy})
}

// try runs the contender of a caller, in its goroutine. If the contender has to wait, it becomes the shared one.
func (l *Local) try(g *Acquisition) (*Lease, error) {
	over := true
	defer func() {
		if over { // an error, or a policy has panicked or ended this goroutine
			l.stopTrying()
		}
	}()
	a, waits, err := g.attempts()
	switch {
	case waits && !g.how.try:
		over = false
		return l.await(g.acquiring, l.goOn(g.ctx, a, g.result.Attempts))
	case waits:
		a, err = g.granted()
	}
	if err != nil {
		return nil, err
	}
	over = false
	return l.hold(g.ctx, a).begin(g.ctx), nil
}

// hold begins the turn of a contender that has run in the goroutine of its caller.
func (l *Local) hold(ctx context.Context, a *attempt) *turn {
	l.mu.Lock()
	l.trying = false
	t := l.holdLocked(ctx, a)
	l.mu.Unlock()
	t.guard()
	return t
}
