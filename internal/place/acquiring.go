package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/kinds"
)

// Acquiring is what lies between the two calls of the Acquire hook.
type Acquiring struct {
	q      *Queue
	ctx    context.Context // of the caller, and once it is open, of the hook
	end    func(hooks.AcquireResult)
	Result hooks.AcquireResult
	open   bool // the hook was called, and end was not

	waited func(error) error // ends the bound of the wait: see package maxwait
}

// Acquiring returns one that is not open.
func (q *Queue) Acquiring(ctx context.Context) *Acquiring {
	return &Acquiring{q: q, ctx: ctx, Result: hooks.AcquireResult{Position: -1}}
}

// Context returns the context of the acquisition.
func (c *Acquiring) Context() context.Context { return c.ctx }

// Open calls the Acquire hook, unless ctx has ended. The caller calls Conclude,
// and Cut in any case.
func (c *Acquiring) Open(r *Request, try bool) error {
	c.ctx, c.waited = maxwait.Begin(c.ctx)
	if err := c.ctx.Err(); err != nil {
		return c.waited(Failed("acquire", c.q.dir, err))
	}
	c.ctx, c.end = traceAcquire(c.ctx, c.q.hooks(), hooks.AcquireInfo{
		Kind: r.Kind.Name, Name: r.Name, Chroot: c.q.m.Chroot(), Path: c.q.dir, Try: try,
		Weight: r.Weight, Local: r.handedOn,
	})
	c.open = true
	return nil
}

// Conclude tells the hook how the acquisition has ended, and returns what the caller gets. It does nothing
// if it is not open.
func (c *Acquiring) Conclude(l *Lease, err error) (*Lease, error) {
	if !c.open {
		return l, err
	}
	if err != nil {
		err = because(c.ctx, err, func() kinds.WaitError { return c.q.why(nil, time.Now()) })
		err = withCause(c.ctx, err)
	}
	err = c.waited(err)
	switch {
	case errors.Is(err, ErrBusy):
		c.Result.Busy = true
	case err != nil:
		c.Result.Err = err
	}
	c.open = false
	c.end(c.Result)
	if err != nil {
		return nil, Failed("acquire", c.q.dir, err)
	}
	return l, nil
}

// withCause adds to the text of an error, which says that ctx has ended, the cause that the caller has given
// (context.WithCancelCause). The error does not match the cause: that may be the loss of another lock.
func withCause(ctx context.Context, err error) error {
	ended, cause := ctx.Err(), context.Cause(ctx)
	if ended == nil || !errors.Is(err, ended) || maxwait.Over(ctx) {
		return err
	}
	if errors.Is(err, cause) { // there is no cause but ended
		return err
	}
	return fmt.Errorf("%w: %v", err, cause) //nolint:errorlint // see above
}

// Cut tells the hook that the acquisition was cut short, by a policy that has panicked or has ended the
// goroutine. It does nothing after Conclude.
func (c *Acquiring) Cut() {
	if c.open {
		c.open = false
		c.Result.Err = ErrCut
		c.end(c.Result)
		_ = c.waited(nil)
	}
}
