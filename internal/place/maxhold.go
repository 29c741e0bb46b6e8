package place

import (
	"context"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// SetMaxHold is WithMaxHold. Its error matches ErrInvalid.
func (r *Request) SetMaxHold(d time.Duration) error {
	if d <= 0 {
		return misuse.Invalidf("WithMaxHold(%v): want more than 0", d)
	}
	r.OwnTerms().MaxHold = d
	return nil
}

// limit ends the contexts of a hold that lasts for too long. The lease is held all the same. A lease without
// WithMaxHold has none.
type limit struct {
	within context.Context // ends with the lease, or when the time is over
	end    context.CancelCauseFunc
	since  time.Time
	timer  *time.Timer // guarded by Lease.mu
}

// limitTo gives the hold a limit, from now on.
func (l *Lease) limitTo(d time.Duration) {
	within, end := context.WithCancelCause(l.hold)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = &limit{within: within, end: end, since: time.Now()}
	if !l.over {
		l.limit.timer = time.AfterFunc(d, l.overstay)
	}
}

// limited returns the limit, or nil.
func (l *Lease) limited() *limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// usable is Err for the contexts of the lease. It looks at the time as well.
func (l *Lease) usable(by *limit) error {
	if err := l.Err(); err != nil {
		return err
	}
	if time.Since(by.since) >= l.t.r.MaxHold {
		by.end(l.tooLong())
	}
	return context.Cause(by.within)
}

func (l *Lease) tooLong() error {
	return Failed("lock", l.t.q.dir, fmt.Errorf("%w (WithMaxHold is %v)", ErrHeldTooLong, l.t.r.MaxHold))
}

// overstay ends the contexts when the time is over, and tells.
func (l *Lease) overstay() {
	l.mu.Lock()
	over, by := l.over, l.limit
	l.mu.Unlock()
	if over || l.Err() != nil {
		return
	}
	by.end(l.tooLong())
	l.t.q.m.Logger().Warn("lock held for too long; it stays held until it is unlocked", "lock", l.t.q.dir, "node", l.t.path,
		"WithMaxHold", l.t.r.MaxHold, "session", hexID(l.t.s))
	traceHeldTooLong(l.ctx, l.t.hooks(), l.info())
}

func traceHeldTooLong(holder context.Context, t *hooks.Trace, h hooks.HoldInfo) {
	if t.HeldTooLong != nil {
		t.HeldTooLong(holder, h)
	}
}

// severalKey is the context key of acquisitions of several locks.
type severalKey struct{}

// Several returns a context for acquisitions of several locks, one after another. The limits of their holds begin with
// BeginLimits, when all of them are held: until then nobody works under them.
func Several(ctx context.Context) context.Context { return context.WithValue(ctx, severalKey{}, true) }

// BeginLimits begins the limits of holds that were got with a context of Several.
func BeginLimits(leases []*Lease) {
	for _, l := range leases {
		if most := l.t.r.MaxHold; most > 0 && l.limited() == nil {
			l.limitTo(most)
		}
	}
}

// Within returns a context that ends with parent, and when the hold of a lease ends or has lasted for too
// long. It looks at those leases alone that have a limit.
func Within(parent context.Context, leases []*Lease) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = parent, func() {}
	for _, l := range leases {
		if l.limited() != nil {
			outer := cancel
			inner, end := l.bounded(ctx)
			ctx, cancel = inner, func() { end(); outer() }
		}
	}
	return ctx, cancel
}
