package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// hooks are the hooks of a manager: those of WithTrace, and those that package plumbing adds later.
// Several sets of hooks are combined to one.
type hooks struct {
	adding sync.Mutex
	now    atomic.Pointer[Trace]
}

// load returns the hooks to call. They do not change: hooks that are added later make a new Trace.
func (h *hooks) load() *Trace {
	if t := h.now.Load(); t != nil {
		return t
	}
	return &noHooks
}

var noHooks Trace

// add adds hooks, which are called after those that are there.
func (h *hooks) add(t Trace) {
	h.adding.Lock()
	defer h.adding.Unlock()
	all := combine(*h.load(), t)
	h.now.Store(&all)
}

// errHook is the outcome that a hook is told if a later hook has panicked. The thing that the
// first one had begun did not take place then.
var errHook = errors.New("another hook ended the goroutine that called it")

// combine returns hooks that call those of a, and then those of b with the context that a
// returned. The functions that they return are called in the opposite order, like deferred calls.
// State is not combined: each State hook is a subscriber of its own.
func combine(a, b Trace) Trace {
	return Trace{
		Traceparent: firstWord(a.Traceparent, b.Traceparent),
		Request:     nest(a.Request, b.Request, errHook),
		Watch:       nest(a.Watch, b.Watch, errHook),
		Acquire:     nest(a.Acquire, b.Acquire, AcquireResult{Err: errHook, Position: -1}),
		Release:     nestRelease(a.Release, b.Release),
		Hold:        nestHold(a.Hold, b.Hold),
		Loss:        bothLosses(a.Loss, b.Loss),
		Retry:       bothRetries(a.Retry, b.Retry),
	}
}

func firstWord(a, b func(context.Context) string) func(context.Context) string {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context) string {
		if word := a(ctx); word != "" {
			return word
		}
		return b(ctx)
	}
}

func nest[I, R any](a, b func(context.Context, I) (context.Context, func(R)), broken R) func(context.Context, I) (context.Context, func(R)) {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, info I) (context.Context, func(R)) {
		end := begin(broken,
			func() (end func(R)) { ctx, end = a(ctx, info); return end },
			func() (end func(R)) { ctx, end = b(ctx, info); return end })
		return ctx, end
	}
}

type releaseHook = func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error))

func nestRelease(a, b releaseHook) releaseHook {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx, holder context.Context, h HoldInfo) (context.Context, func(error)) {
		end := begin(errHook,
			func() (end func(error)) { ctx, end = a(ctx, holder, h); return end },
			func() (end func(error)) { ctx, end = b(ctx, holder, h); return end })
		return ctx, end
	}
}

func nestHold(a, b func(context.Context, HoldInfo) func(error)) func(context.Context, HoldInfo) func(error) {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, h HoldInfo) func(error) {
		return begin(errHook,
			func() func(error) { return a(ctx, h) },
			func() func(error) { return b(ctx, h) })
	}
}

// begin calls a and b, and returns a function that calls the functions that they returned: that of
// b first. If b panics, that of a is called with broken.
func begin[R any](broken R, a, b func() func(R)) func(R) {
	endA := orNothing(a())
	begun := false
	defer func() {
		if !begun {
			endA(broken)
		}
	}()
	endB := orNothing(b())
	begun = true
	return func(r R) {
		defer endA(r) // also if b's function panics
		endB(r)
	}
}

func orNothing[R any](end func(R)) func(R) {
	if end == nil {
		return func(R) {}
	}
	return end
}

func bothLosses(a, b func(context.Context, HoldInfo, error)) func(context.Context, HoldInfo, error) {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, h HoldInfo, cause error) {
		defer b(ctx, h, cause)
		a(ctx, h, cause)
	}
}

func bothRetries(a, b func(context.Context, RetryInfo)) func(context.Context, RetryInfo) {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, r RetryInfo) {
		defer b(ctx, r)
		a(ctx, r)
	}
}

// either returns b if a is missing, otherwise a.
func either[F any](missing bool, a, b F) F {
	if missing {
		return b
	}
	return a
}
