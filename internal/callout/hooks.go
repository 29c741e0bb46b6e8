// Package callout calls functions of the program that uses this module: hooks, backoffs, dialers. Whatever such a
// function does, it costs nobody a lock.
package callout

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/hooks"
)

// Hooks is the hooks of a manager: those of WithTrace, and those that AddTrace adds later. Several sets of hooks are
// combined to one. The zero value has none. It also has the goroutines in which functions of the program run.
type Hooks struct {
	calls userCalls // of all of them
	late  hookQueue

	adding sync.Mutex
	now    atomic.Pointer[hooks.Trace]
}

// Log sets the log that is told of functions which panic or do not return.
func (h *Hooks) Log(log *slog.Logger) { h.calls.log, h.late.log = log, log }

// Start has goroutines kept for the next functions, until end. It is called before any function is.
func (h *Hooks) Start(end <-chan struct{}) { h.calls.workers.init(end) }

// Do runs f, which is not the user's, in a goroutine, and returns at once.
func (h *Hooks) Do(f func()) { h.calls.workers.do(f) }

// Late calls hooks for a lock that was lost. It returns at once: see hookQueue.
func (h *Hooks) Late(call func()) { h.late.add(call) }

// Load returns the hooks to call. They do not change: hooks that are added later make a new Trace.
func (h *Hooks) Load() *hooks.Trace {
	if t := h.now.Load(); t != nil {
		return t
	}
	return &noHooks
}

var noHooks hooks.Trace

// Add adds hooks, which are called after those that are there. It returns their State hook, which gets its
// changes as every subscriber does.
func (h *Hooks) Add(t hooks.Trace) (state func(hooks.Change)) {
	h.adding.Lock()
	defer h.adding.Unlock()
	t = h.calls.guard(t)
	all := combine(*h.Load(), t)
	h.now.Store(&all)
	return t.State
}

// combine returns hooks that call those of a, and then those of b with the context that a
// returned. The functions that they return are called in the opposite order, like deferred calls.
// State is not combined: each State hook is a subscriber of its own.
func combine(a, b hooks.Trace) hooks.Trace {
	return hooks.Trace{
		Traceparent: firstWord(a.Traceparent, b.Traceparent),
		Request:     nest(a.Request, b.Request),
		Watch:       nest(a.Watch, b.Watch),
		Acquire:     nest(a.Acquire, toldOf(a.Traceparent, b.Acquire)),
		Release:     nestRelease(a.Release, b.Release),
		Hold:        nestHold(a.Hold, b.Hold),
		Loss:        bothLosses(a.Loss, b.Loss),
		Retry:       both(a.Retry, b.Retry),
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

// beginHook is the type of the hooks that begin something.
type beginHook[I, R any] = func(context.Context, I) (context.Context, func(R))

func nest[I, R any](a, b beginHook[I, R]) beginHook[I, R] {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, info I) (context.Context, func(R)) {
		ctx, endA := a(ctx, info)
		ctx, endB := b(ctx, info)
		return ctx, inTurn(endB, endA)
	}
}

// toldOf returns an Acquire hook that is told the traceparent that an earlier set of hooks has for the acquisition.
func toldOf(
	traceparent func(context.Context) string, acquire beginHook[hooks.AcquireInfo, hooks.AcquireResult],
) beginHook[hooks.AcquireInfo, hooks.AcquireResult] {
	if traceparent == nil || acquire == nil {
		return acquire
	}
	return func(ctx context.Context, info hooks.AcquireInfo) (context.Context, func(hooks.AcquireResult)) {
		info.Traceparent = traceparent(ctx)
		return acquire(ctx, info)
	}
}

type releaseHook = func(ctx, holder context.Context, h hooks.HoldInfo) (context.Context, func(error))

func nestRelease(a, b releaseHook) releaseHook {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx, holder context.Context, h hooks.HoldInfo) (context.Context, func(error)) {
		ctx, endA := a(ctx, holder, h)
		ctx, endB := b(ctx, holder, h)
		return ctx, inTurn(endB, endA)
	}
}

type holdHook = func(context.Context, hooks.HoldInfo) func(error)

func nestHold(a, b holdHook) holdHook {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, h hooks.HoldInfo) func(error) {
		endA := a(ctx, h)
		return inTurn(b(ctx, h), endA)
	}
}

// inTurn returns a function that calls both, of which either may be nil.
func inTurn[R any](first, second func(R)) func(R) {
	if first == nil || second == nil {
		return either(first == nil, first, second)
	}
	return func(r R) {
		first(r)
		second(r)
	}
}

type lossHook = func(context.Context, hooks.HoldInfo, error)

func bothLosses(a, b lossHook) lossHook {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, h hooks.HoldInfo, cause error) {
		a(ctx, h, cause)
		b(ctx, h, cause)
	}
}

func both[I any](a, b func(context.Context, I)) func(context.Context, I) {
	if a == nil || b == nil {
		return either(a == nil, a, b)
	}
	return func(ctx context.Context, info I) {
		a(ctx, info)
		b(ctx, info)
	}
}

// either returns b if a is missing, otherwise a.
func either[F any](missing bool, a, b F) F {
	if missing {
		return b
	}
	return a
}
