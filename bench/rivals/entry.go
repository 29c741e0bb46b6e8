package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// entry measures when a contender of turnstile has entered the queue: when its create was answered. It is
// for one acquisition at a time.
type entry struct{ answered, waited atomic.Pointer[time.Time] }

// last returns when the last acquisition entered, or the zero time if nobody was ahead of it then.
func (e *entry) last() time.Time {
	if t := e.waited.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

func (e *entry) trace() session.Trace {
	return session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op != "create" {
				return ctx, nil
			}
			return ctx, func(error) {
				now := time.Now()
				e.answered.Store(&now)
			}
		},
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			e.waited.Store(nil)
			return ctx, func(r session.AcquireResult) {
				if r.Position > 0 {
					e.waited.Store(e.answered.Load())
				}
			}
		},
	}
}
