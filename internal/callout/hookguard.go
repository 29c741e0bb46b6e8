package callout

import (
	"context"

	"github.com/turnstile-go/turnstile/hooks"
)

// guard returns hooks that call those of t by way of call, and so are safe to call anywhere. A hook that has
// not returned counts as one that has returned nothing: what it observes goes on with the context that the
// hook got.
func (u *userCalls) guard(t hooks.Trace) hooks.Trace {
	return hooks.Trace{
		Traceparent: guardWord(u, t.Traceparent),
		Request:     guardBegin(u, "Trace.Request", t.Request),
		Watch:       guardBegin(u, "Trace.Watch", t.Watch),
		Acquire:     guardBegin(u, "Trace.Acquire", t.Acquire),
		Release:     guardRelease(u, t.Release),
		Hold:        guardHold(u, t.Hold),
		Loss:        guardLoss(u, t.Loss),
		Retry:       guardEvent(u, "Trace.Retry", t.Retry),
		State:       guardEnd(u, "Trace.State", t.State),
	}
}

func guardWord(u *userCalls, hook func(context.Context) string) func(context.Context) string {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context) (word string) {
		u.call("Trace.Traceparent", func() { word = hook(ctx) })
		return word
	}
}

func guardBegin[I, R any](u *userCalls, name string, hook beginHook[I, R]) beginHook[I, R] {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, info I) (within context.Context, end func(R)) {
		u.call(name, func() { within, end = hook(ctx, info) })
		return orOuter(within, ctx), guardEnd(u, endOf(name), end)
	}
}

func guardRelease(u *userCalls, hook releaseHook) releaseHook {
	const name = "Trace.Release"
	if hook == nil {
		return nil
	}
	return func(ctx, holder context.Context, h hooks.HoldInfo) (within context.Context, end func(error)) {
		u.call(name, func() { within, end = hook(ctx, holder, h) })
		return orOuter(within, ctx), guardEnd(u, endOf(name), end)
	}
}

func guardHold(u *userCalls, hook holdHook) holdHook {
	const name = "Trace.Hold"
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, h hooks.HoldInfo) (end func(error)) {
		u.call(name, func() { end = hook(ctx, h) })
		return guardEnd(u, endOf(name), end)
	}
}

func guardLoss(u *userCalls, hook lossHook) lossHook {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, h hooks.HoldInfo, cause error) {
		u.call("Trace.Loss", func() { hook(ctx, h, cause) })
	}
}

func guardEvent[I any](u *userCalls, name string, hook func(context.Context, I)) func(context.Context, I) {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, info I) { u.call(name, func() { hook(ctx, info) }) }
}

// guardEnd guards a function that a hook has returned, or a State hook. It may be nil.
func guardEnd[R any](u *userCalls, name string, f func(R)) func(R) {
	if f == nil {
		return nil
	}
	return func(r R) { u.call(name, func() { f(r) }) }
}

// endOf returns the name of the function that a hook has returned.
func endOf(name string) string { return "end of " + name }

// orOuter returns the context that a hook has returned, or the one that it got.
func orOuter(within, outer context.Context) context.Context {
	if within == nil {
		return outer
	}
	return within
}
