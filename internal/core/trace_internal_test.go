package core

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/hooks"
)

// valueKey is the key of a value in a context.
type valueKey struct{}

// Without hooks nothing is allocated for them.
func TestNoTraceAllocatesNothing(t *testing.T) {
	s := &Session{cfg: &Config{}, life: context.Background()}
	ctx := context.WithValue(context.Background(), valueKey{}, 1)
	info := hooks.RequestInfo{Op: "create", Path: "/a"}
	n := testing.AllocsPerRun(100, func() {
		s.traceRequest(ctx, info)(nil)
		s.traceRetry(ctx, info, 1, ErrLost)
		if s.lifeWith(ctx) != s.life {
			t.Error("a context of its own")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Work in the background lasts as long as the session, even if the context on whose behalf it
// runs has ended.
func TestLifeWithValues(t *testing.T) {
	life, end := context.WithCancelCause(context.Background())
	s := &Session{cfg: &Config{}, life: life}
	s.cfg.trace.Add(hooks.Trace{Retry: func(context.Context, hooks.RetryInfo) {}})
	caller, cancel := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "caller"))
	ctx := s.lifeWith(caller)
	cancel()
	if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(valueKey{}) != "caller" {
		t.Errorf("after the caller: %v, %v, value %v", ctx.Err(), context.Cause(ctx), ctx.Value(valueKey{}))
	}
	end(ErrLost)
	if ctx.Err() == nil || context.Cause(ctx) != ErrLost {
		t.Errorf("after the session: %v, %v", ctx.Err(), context.Cause(ctx))
	}
}
