package place

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Acquire waits until the contender may go, and returns the lease. It is all steps of Begin.
func (q *Queue) Acquire(ctx context.Context, r Request) (*Lease, error) {
	return q.Begin(ctx, r).Finish()
}

// TryAcquire is Acquire without the wait for other contenders. It returns ErrBusy in its place.
func (q *Queue) TryAcquire(ctx context.Context, r Request) (*Lease, error) {
	return q.Acquisition(ctx, &r, &Entry{Try: true}).Finish()
}

// Begin returns the acquisition that Acquire makes. Nothing is sent before the first Next.
func (q *Queue) Begin(ctx context.Context, r Request) *Acquisition {
	return &Acquisition{Acquiring: q.Acquiring(ctx), r: &r}
}

// Acquisition is the way to a lease: one attempt after another, until one is granted or fails for good. It
// gets the lease in steps, for callers that want to wait on as little stack as possible: a goroutine keeps
// all the stack that it has used, but for what lies above its frames when memory is collected. Finish has the
// loop.
//
// One goroutine uses it. It must go on until Next returns waits as false.
type Acquisition struct {
	*Acquiring
	r      *Request
	how    Entry        // of the next attempt
	pace   *rounds.Pace // of the attempts; nil before the second
	stands *attempt     // has entered, and waits or is granted; nil if the next attempt is a new one
}

// Acquisition returns an acquisition whose hook is not called yet.
func (q *Queue) Acquisition(ctx context.Context, r *Request, how *Entry) *Acquisition {
	return q.Acquiring(ctx).Acquisition(r, how)
}

// Acquisition returns the acquisition of a call. It sets the data of r, so r may not be used by another.
func (c *Acquiring) Acquisition(r *Request, how *Entry) *Acquisition {
	return &Acquisition{Acquiring: c, r: r, how: *how}
}

// TakeOver goes on with the attempt of another acquisition, which waits.
func (g *Acquisition) TakeOver(other *Acquisition) {
	a := other.stands
	g.stands, g.Result.Attempts = a, other.Result.Attempts
	a.entry = g.how
	a.show(a.view)
}

// LooksAlso has a try look at other places too before it enters.
func (g *Acquisition) LooksAlso(at []Ask) { g.how.Also = at }

// Tries and Lazy are those of its Entry.
func (g *Acquisition) Tries() bool { return g.how.Try }
func (g *Acquisition) Lazy() bool  { return g.how.Lazy }

// Finish is all steps of the acquisition.
func (g *Acquisition) Finish() (*Lease, error) {
	for {
		l, waits, err := g.Next()
		if !waits {
			return l, err
		}
		g.Wait()
	}
}

// Next does what is to be done. With waits as false it returns what Acquire of a Queue would. With waits as
// true it has nothing to do until Wait returns.
func (g *Acquisition) Next() (l *Lease, waits bool, err error) {
	if !g.open {
		if err := g.r.complete(); err != nil {
			return nil, false, Failed("acquire", g.q.dir, err)
		}
		if err := g.Open(g.r, g.how.Try); err != nil {
			return nil, false, err
		}
	}
	defer func() {
		if !waits {
			g.Cut()
		}
	}()
	if waits, err = g.Attempts(); waits {
		return nil, true, nil
	}
	if err == nil {
		l = g.hold()
	}
	l, err = g.Conclude(l, err)
	return l, false, err
}

// Wait waits for others, or until the ctx of the acquisition ends.
func (g *Acquisition) Wait() { g.stands.block(g.stands.within(g.ctx)) }

// Granted waits until an attempt is granted.
func (g *Acquisition) Granted() error {
	for {
		waits, err := g.Attempts()
		if !waits {
			return err
		}
		g.Wait()
	}
}

// Turn begins the turn of the attempt that was granted. The caller calls Guard and then Begin.
func (g *Acquisition) Turn(by Sharer) *Turn { return newTurn(g.ctx, g.stands, by) }

// MayBeKept reports whether the place that was granted may be kept, and returns the watch on the children that
// the listing has set which granted the place, or nil.
func (g *Acquisition) MayBeKept() (children *core.Watch, may bool) {
	if !g.stands.mayBeKept() {
		return nil, false
	}
	return g.stands.children, true
}

// mayBeKept is MayBeKept. Near the end of the sequence numbers, the directory has to become empty.
func (a *attempt) mayBeKept() bool {
	return a.entry.Lazy && !a.crowded && a.node.Sequence >= 0 && a.node.Sequence < RestartFrom
}

// hold begins the hold of the attempt that was granted.
func (g *Acquisition) hold() *Lease {
	t := newTurn(g.ctx, g.stands, nil)
	t.Guard()
	return t.Begin(g.ctx)
}

// Quit gives up the place of the attempt that was granted.
func (g *Acquisition) Quit() { g.stands.quit(g.ctx, context.Canceled) }

// Attempts makes one attempt after another, until one is granted or fails for good. With waits as true the last
// one has to wait, and the next call goes on with it.
func (g *Acquisition) Attempts() (waits bool, err error) {
	if a := g.stands; a != nil && a.is() == decide.Holding {
		return false, nil // it was taken together with others
	}
	var moving *attempt // the last attempt, if its place is to be renewed
	defer func() {
		if moving != nil { // the user's backoff has ended the wait
			moving.quit(g.ctx, g.ctx.Err())
		}
	}()
	for {
		if g.r.Data == nil && g.stands == nil { // no hook must run before the attempt that stands does
			g.r.Data = g.r.describe(g.ctx, g.q.hooks()).Encode()
		}
		g.how.renews, moving = moving, nil
		a, err := g.attempt()
		if err != nil {
			return false, err
		}
		out, err := a.run(g.ctx)
		g.Result.Position = a.position
		switch out {
		case decide.Granted, decide.Waits:
			g.stands = a
			return out == decide.Waits, nil
		case decide.Renews:
			moving = a
		case decide.Again:
			traceRetry(g.ctx, g.q.hooks(), opAcquire, g.Result.Attempts, err)
		default:
			return false, a.explain(g.ctx, err)
		}
		if g.pace == nil {
			g.pace = g.q.newPace()
		}
		// If the session has ended, waiting for the next one is enough.
		if err := g.pace.Wait(g.ctx, a.s.Done()); err != nil {
			return false, err
		}
	}
}

// attempt returns the next attempt to run: a new one, or the one that stands in the queue already.
func (g *Acquisition) attempt() (*attempt, error) {
	if a := g.stands; a != nil {
		g.stands = nil
		return a, nil
	}
	s, err := g.q.sessionFor(g.ctx, &g.how)
	if err != nil {
		return nil, err
	}
	return g.attemptIn(s), nil
}

// attemptIn returns a new attempt.
func (g *Acquisition) attemptIn(s *core.Session) *attempt {
	g.Result.Attempts++
	return newAttempt(g.q, s, g.r, &g.how)
}

// sessionFor returns the session for an attempt: that of the other lease or attempt if it shares
// or renews a place, otherwise the live one.
func (q *Queue) sessionFor(ctx context.Context, how *Entry) (*core.Session, error) {
	switch {
	case how.beside != nil:
		return how.beside.t.s, how.beside.Err()
	case how.renews != nil:
		return how.renews.s, nil
	}
	return q.m.Session(ctx)
}
