package session_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A context that ends in the moment in which the connection breaks is what WatchNodes reports: not the break, which the
// next connection mends.
func TestWatchNodesCancelledAtACut(t *testing.T) {
	for range 20 { // of two things that have ended, either may be seen first
		type cancelKey struct{}
		inBubble(t, func(e *entering) {
			paths := e.makes("a", "b")
			ctx, cancel := context.WithCancel(patient(e.t))
			defer cancel()
			e.CutBefore(zktest.On(zktest.OpGetData, paths[1]))
			_, err := e.s.WatchNodes(context.WithValue(ctx, cancelKey{}, cancel), paths...)
			wantErr(e.t, "WatchNodes", err, context.Canceled)
		}, session.WithTrace(session.Trace{Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			return ctx, func(err error) {
				if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok && err != nil {
					cancel()
				}
			}
		}}))
	}
}
