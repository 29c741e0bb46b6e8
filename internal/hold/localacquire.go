package hold

import (
	"context"
	"time"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/kinds"
)

// Acquire is Acquire of a Queue by way of the local queue.
func (l *Local) Acquire(ctx context.Context) (*place.Lease, error) { return l.acquire(ctx, false) }

// TryAcquire is TryAcquire of a Queue. It sends no request while somebody in this process holds or waits,
// unless readers hold.
func (l *Local) TryAcquire(ctx context.Context) (*place.Lease, error) { return l.acquire(ctx, true) }

func (l *Local) acquire(ctx context.Context, try bool) (*place.Lease, error) {
	c := l.q.Acquiring(ctx)
	if err := c.Open(&l.r, try); err != nil {
		return nil, err
	}
	defer c.Cut()
	lease, err := l.get(c, try)
	return c.Conclude(lease, err)
}

// await waits for the grant of a waiter.
func (l *Local) await(c *place.Acquiring, w *waiter) (*place.Lease, error) {
	var g grant
	select {
	case g = <-w.got:
	case <-c.Context().Done():
		why := l.why(w, time.Now())
		if l.withdraw(w) {
			why.Err = c.Context().Err()
			return nil, &why
		}
		g = <-w.got // does not block for long: its grant is on the way
	}
	c.Result = g.result
	if g.err != nil {
		return nil, g.err
	}
	return g.turn.Begin(c.Context()), nil
}

// why says why a waiter has to wait: for a contender that asks the servers, or for this process.
func (l *Local) why(w *waiter, now time.Time) (out kinds.WaitError) {
	l.mu.Lock()
	by, held := w.in.by, l.turn
	asks := l.trying || held != nil && held.setting // then the readers that hold are not in the way
	l.mu.Unlock()
	switch {
	case by != nil:
		return l.q.Why(&by.Shown, now)
	case asks:
		return l.q.Why(nil, now)
	case held != nil:
		out.Ahead = held.Holder()
		out.Reason = "held by this process"
		if since := out.Ahead.HeldSince; !since.IsZero() {
			out.Reason += " for " + place.Short(now.Sub(since))
		}
	}
	return out
}

// get is Acquire or TryAcquire without the Acquire hook.
func (l *Local) get(c *place.Acquiring, try bool) (*place.Lease, error) {
	t, w, lazy, err := l.join(c.Context(), try)
	switch {
	case err != nil:
		return nil, err
	case t != nil:
		return t.Begin(c.Context()), nil
	case w != nil:
		return l.await(c, w)
	}
	g := c.Acquisition(l.request(), &place.Entry{Try: try, Lazy: lazy})
	if !l.many {
		return l.try(g)
	}
	if err := g.Granted(); err != nil { // a reader: no other reader of this process is in its way
		return nil, err
	}
	return l.hold(g), nil
}

// try runs the contender of a caller, in its goroutine. If the contender has to wait, it becomes the shared one.
func (l *Local) try(g *place.Acquisition) (*place.Lease, error) {
	over := true
	defer func() {
		if over { // an error, or a policy has panicked or ended this goroutine
			l.stopTrying()
		}
	}()
	waits, err := g.Attempts()
	switch {
	case waits && !g.Tries():
		over = false
		return l.await(g.Acquiring, l.goOn(g))
	case waits:
		err = g.Granted()
	}
	if err != nil {
		return nil, err
	}
	over = false
	return l.hold(g), nil
}

// hold begins the turn of a contender that has run in the goroutine of its caller.
func (l *Local) hold(g *place.Acquisition) *place.Lease {
	l.mu.Lock()
	l.trying = false
	t := l.holdLocked(g)
	l.mu.Unlock()
	t.guard()
	return t.Begin(g.Context())
}
