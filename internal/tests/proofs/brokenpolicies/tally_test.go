package brokenpolicies

import (
	"context"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/session"
)

// tally is a set of hooks that counts what has begun and has not ended.
type tally struct{ begun, ended atomic.Int64 }

func (c *tally) open() int64 { return c.begun.Load() - c.ended.Load() }

func (c *tally) begin() (end func(error)) {
	c.begun.Add(1)
	return func(error) { c.ended.Add(1) }
}

func (c *tally) trace() session.Trace {
	return session.Trace{
		Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			return ctx, c.begin()
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			return ctx, c.begin()
		},
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			end := c.begin()
			return ctx, func(r session.AcquireResult) { end(r.Err) }
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			return ctx, c.begin()
		},
		Hold: func(context.Context, session.HoldInfo) func(error) { return c.begin() },
	}
}
