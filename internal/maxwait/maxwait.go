// Package maxwait bounds the waits of calls whose context says so.
package maxwait

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/kinds"
)

// key is the context key of the time for which a call may wait. 0: for as long as its context lasts.
type key struct{}

// With returns a context whose calls wait for d at most.
func With(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, key{}, d)
}

// Without returns a context whose calls may wait for as long as it lasts.
func Without(ctx context.Context) context.Context {
	if _, ok := ctx.Value(key{}).(time.Duration); !ok {
		return ctx
	}
	return context.WithValue(ctx, key{}, nil)
}

// Begin begins the wait of a call. inside ends with ctx or when the call has waited for as long as it may, and does not
// bound calls within the call again. The caller calls end with the error of the call, and returns what that returns.
func Begin(ctx context.Context) (inside context.Context, end func(error) error) {
	if d, ok := ctx.Value(key{}).(time.Duration); ok {
		return bounded(ctx, d)
	}
	return ctx, unbounded
}

// bounded is Begin of a call that may wait for d.
func bounded(ctx context.Context, d time.Duration) (context.Context, func(error) error) {
	inside, cancel := context.WithTimeoutCause(Without(ctx), d, kinds.ErrMaxWait)
	return inside, func(err error) error {
		defer cancel()
		if err == nil || !Over(inside) || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return ended(err)
	}
}

func unbounded(err error) error { return err }

// Over reports whether a context has ended because a call has waited for as long as it may.
func Over(ctx context.Context) bool { return context.Cause(ctx) == kinds.ErrMaxWait } //nolint:errorlint // the cause itself

// ended says in the error of a wait what has ended it.
func ended(err error) error {
	var wait *kinds.WaitError
	if errors.As(err, &wait) {
		wait.Err = kinds.ErrMaxWait
		return err
	}
	var op *kinds.OpError
	if errors.As(err, &op) {
		op.Err = &kinds.WaitError{Err: kinds.ErrMaxWait}
		return err
	}
	return &kinds.WaitError{Err: kinds.ErrMaxWait}
}
