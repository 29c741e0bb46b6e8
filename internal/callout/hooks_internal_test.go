package callout

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/hooks"
)

// journal has hooks that write what they are called for.
type journal struct{ lines []string }

func (j *journal) add(line string) { j.lines = append(j.lines, line) }

type nameKey struct{}

// hooks returns a set of hooks. Those that get a context write the names of the sets before theirs.
func (j *journal) hooks(name string) hooks.Trace {
	in := func(ctx context.Context, what string) context.Context {
		before, _ := ctx.Value(nameKey{}).(string)
		j.add(name + " " + what + " after " + before)
		return context.WithValue(ctx, nameKey{}, before+name)
	}
	end := func(what string) func(error) { return func(error) { j.add(name + " ends " + what) } }
	return hooks.Trace{
		Traceparent: func(context.Context) string { return name },
		Request: func(ctx context.Context, _ hooks.RequestInfo) (context.Context, func(error)) {
			return in(ctx, "request"), end("request")
		},
		Watch: func(ctx context.Context, _ hooks.WatchInfo) (context.Context, func(error)) {
			return in(ctx, "watch"), end("watch")
		},
		Acquire: func(ctx context.Context, _ hooks.AcquireInfo) (context.Context, func(hooks.AcquireResult)) {
			return in(ctx, "acquire"), func(r hooks.AcquireResult) { end("acquire")(r.Err) }
		},
		Release: func(ctx, _ context.Context, _ hooks.HoldInfo) (context.Context, func(error)) {
			return in(ctx, "release"), end("release")
		},
		Hold:  func(ctx context.Context, _ hooks.HoldInfo) func(error) { in(ctx, "hold"); return end("hold") },
		Loss:  func(context.Context, hooks.HoldInfo, error) { j.add(name + " loss") },
		Retry: func(context.Context, hooks.RetryInfo) { j.add(name + " retry") },
	}
}

// all calls every hook once.
func all(t *hooks.Trace) {
	ctx := context.Background()
	_, end := t.Request(ctx, hooks.RequestInfo{})
	end(nil)
	_, end = t.Watch(ctx, hooks.WatchInfo{})
	end(nil)
	_, over := t.Acquire(ctx, hooks.AcquireInfo{})
	over(hooks.AcquireResult{})
	_, end = t.Release(ctx, ctx, hooks.HoldInfo{})
	end(nil)
	t.Hold(ctx, hooks.HoldInfo{})(nil)
	t.Loss(ctx, hooks.HoldInfo{}, errors.New("lost"))
	t.Retry(ctx, hooks.RetryInfo{})
}

// Hooks of several parties are all called, nested like deferred calls.
func TestCombinedHooks(t *testing.T) {
	var j journal
	var h Hooks
	h.Add(j.hooks("a"))
	h.Add(hooks.Trace{}) // changes nothing
	h.Add(j.hooks("b"))
	all(h.Load())
	var want []string
	for _, what := range []string{"request", "watch", "acquire", "release"} {
		want = append(want, "a "+what+" after ", "b "+what+" after a", "b ends "+what, "a ends "+what)
	}
	want = append(want, "a hold after ", "b hold after ", "b ends hold", "a ends hold", "a loss", "b loss", "a retry", "b retry")
	if d := cmp.Diff(want, j.lines); d != "" {
		t.Error(d)
	}
	if got := h.Load().Traceparent(context.Background()); got != "a" {
		t.Errorf("traceparent of %q, want that of the first", got)
	}
}

// A hook that nobody has set stays nil, so that nothing is allocated for it.
func TestCombinedHooksStayNil(t *testing.T) {
	c := combine(hooks.Trace{}, hooks.Trace{})
	if c.Traceparent != nil || c.Request != nil || c.Watch != nil || c.Acquire != nil || c.Release != nil ||
		c.Hold != nil || c.Loss != nil || c.Retry != nil || c.State != nil {
		t.Errorf("%+v", c)
	}
}
