package session

import (
	"context"
	"sync"
	"sync/atomic"
)

// traces are the hooks of a manager: those of WithTrace, and those that AddTrace adds later, combined to one. That one does
// not change: hooks that are added later make a new Trace.
type traces struct {
	adding sync.Mutex
	now    atomic.Pointer[Trace] // never nil
}

func (h *traces) add(t Trace) {
	h.adding.Lock()
	defer h.adding.Unlock()
	all := combine(*h.now.Load(), t)
	h.now.Store(&all)
}

// combine returns hooks that call those of a, and then those of b with the context that a returned. The functions that
// they return are called in the opposite order, like deferred calls. State is not combined: each State hook is a
// subscriber of its own.
func combine(a, b Trace) Trace {
	all := Trace{
		Traceparent: merge(a.Traceparent, b.Traceparent, func(ctx context.Context) string {
			if word := a.Traceparent(ctx); word != "" {
				return word
			}
			return b.Traceparent(ctx)
		}),
		Request: nest(a.Request, b.Request),
		Watch:   nest(a.Watch, b.Watch),
		Release: merge(a.Release, b.Release, func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error)) {
			ctx, endA := orSame[error](ctx)(a.Release(ctx, holder, h))
			ctx, endB := orSame[error](ctx)(b.Release(ctx, holder, h))
			return ctx, inTurn(endB, endA)
		}),
		Hold: merge(a.Hold, b.Hold, func(ctx context.Context, h HoldInfo) func(error) {
			endA := a.Hold(ctx, h)
			return inTurn(b.Hold(ctx, h), endA)
		}),
		Loss: merge(a.Loss, b.Loss, func(ctx context.Context, h HoldInfo, cause error) {
			a.Loss(ctx, h, cause)
			b.Loss(ctx, h, cause)
		}),
		Retry: merge(a.Retry, b.Retry, func(ctx context.Context, r RetryInfo) {
			a.Retry(ctx, r)
			b.Retry(ctx, r)
		}),
	}
	acquire := b.Acquire
	if a.Traceparent != nil && acquire != nil { // it is told the traceparent that an earlier set of hooks has
		acquire = func(ctx context.Context, info AcquireInfo) (context.Context, func(AcquireResult)) {
			info.Traceparent = a.Traceparent(ctx)
			return b.Acquire(ctx, info)
		}
	}
	all.Acquire = nest(a.Acquire, acquire)
	return all
}

// merge returns both, which calls a and b, or the only one that there is.
func merge[F func(context.Context) string | releaseHook | holdHook | lossHook | retryHook](a, b, both F) F {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return both
}

type (
	releaseHook = func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error))
	holdHook    = func(context.Context, HoldInfo) func(error)
	lossHook    = func(context.Context, HoldInfo, error)
	retryHook   = func(context.Context, RetryInfo)
)

func nest[I, R any](a, b func(context.Context, I) (context.Context, func(R))) func(context.Context, I) (context.Context, func(R)) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, info I) (context.Context, func(R)) {
		ctx, endA := orSame[R](ctx)(a(ctx, info))
		ctx, endB := orSame[R](ctx)(b(ctx, info))
		return ctx, inTurn(endB, endA)
	}
}

// orSame replaces the context that a hook has not returned by the one that it got.
func orSame[R any](had context.Context) func(context.Context, func(R)) (context.Context, func(R)) {
	return func(ctx context.Context, end func(R)) (context.Context, func(R)) {
		if ctx == nil {
			ctx = had
		}
		return ctx, end
	}
}

// inTurn returns a function that calls both, of which either may be nil.
func inTurn[R any](first, second func(R)) func(R) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(r R) {
		first(r)
		second(r)
	}
}

func endNothing(error) {}

// traceRequest calls the hook for a request, and returns the function to call at its end.
func (s *Session) traceRequest(ctx context.Context, op, path string) func(error) {
	hook := s.m.trace.now.Load().Request
	if hook == nil {
		return endNothing
	}
	to := s.server()
	_, end := hook(ctx, RequestInfo{Op: op, Path: path, Chroot: s.cfg.outward("/"), Server: to.Name(), Peer: to.Addr})
	if end == nil {
		return endNothing
	}
	return end
}

func (s *Session) traceRetry(ctx context.Context, op string, try int, cause error) {
	if hook := s.m.trace.now.Load().Retry; hook != nil {
		hook(ctx, RetryInfo{Op: op, Try: try, Cause: cause})
	}
}
