// Package maxwait bounds the waits of calls whose context says so.
package maxwait

import (
	"context"
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/kinds"
)

// key is the context key of a bound: a time.Duration for each call, or a time.Time for several calls together. nil: a call
// may wait for as long as its context lasts.
type key struct{}

// With returns a context whose calls wait for d at most.
func With(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, key{}, d)
}

// Without returns a context whose calls may wait for as long as it lasts.
func Without(ctx context.Context) context.Context {
	if ctx.Value(key{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, nil)
}

// Share returns a context whose calls share the time that one of them has in ctx. It begins now. A call that consists of
// several waits uses it.
func Share(ctx context.Context) context.Context {
	if d, ok := ctx.Value(key{}).(time.Duration); ok {
		return context.WithValue(ctx, key{}, time.Now().Add(d))
	}
	return ctx
}

// Of returns ctx with the bound of another context, or with none if that has none.
func Of(ctx, other context.Context) context.Context {
	bound := other.Value(key{})
	if bound == nil {
		return Without(ctx)
	}
	return context.WithValue(ctx, key{}, bound)
}

// Begin begins the wait of a call. inside ends with ctx or when the call has waited for as long as it may, and does not
// bound calls within the call again. The caller calls end with the error of the call, and returns what that returns.
func Begin(ctx context.Context) (inside context.Context, end func(error) error) {
	switch bound := ctx.Value(key{}).(type) {
	case time.Duration:
		return until(ctx, time.Now().Add(bound))
	case time.Time:
		return until(ctx, bound)
	}
	return ctx, unbounded
}

// until is Begin of a call that may wait until end.
func until(ctx context.Context, end time.Time) (context.Context, func(error) error) {
	inside, cancel := context.WithDeadlineCause(Without(ctx), end, kinds.ErrMaxWait)
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
