package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// A hook may return neither a context nor a function. Then the caller's context is used.
func TestHooksThatReturnNothing(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		held, err := zklock.New(w.Connect(), "/x")
		w.Must(err)
		mu, err := zklock.New(w.Connect(session.WithTrace(session.Trace{
			Acquire: func(context.Context, session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				return nil, nil
			},
			Watch:   func(context.Context, session.WatchInfo) (context.Context, func(error)) { return nil, nil },
			Request: func(context.Context, session.RequestInfo) (context.Context, func(error)) { return nil, nil },
			Release: func(context.Context, context.Context, session.HoldInfo) (context.Context, func(error)) {
				return nil, nil
			},
			Hold: func(context.Context, session.HoldInfo) func(error) { return nil },
		})), "/x")
		w.Must(err)
		w.Must(held.Lock(w.Context()))
		time.AfterFunc(time.Minute, func() { w.Must(held.Unlock()) })
		w.Must(mu.Lock(w.Context()))
		w.Must(mu.Unlock())
	})
}
