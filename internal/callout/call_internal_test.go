package callout

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/loglines"
)

// fates are what a hook can do instead of returning.
var fates = map[string]func(){
	"panics":          func() { panic("the hook's own words") },
	"panics with nil": func() { panic(nil) },
	"ends":            runtime.Goexit,
}

// broken returns hooks of which one, named as in the log, meets its fate. The others do nothing.
func broken(name string, fate func()) hooks.Trace {
	strike := func(at string) {
		if at == name {
			fate()
		}
	}
	end := func(at string) func(error) { return func(error) { strike("end of " + at) } }
	return hooks.Trace{
		Traceparent: func(context.Context) string { strike("Trace.Traceparent"); return "" },
		Request: func(context.Context, hooks.RequestInfo) (context.Context, func(error)) {
			strike("Trace.Request")
			return nil, end("Trace.Request")
		},
		Watch: func(ctx context.Context, _ hooks.WatchInfo) (context.Context, func(error)) {
			strike("Trace.Watch")
			return ctx, end("Trace.Watch")
		},
		Acquire: func(ctx context.Context, _ hooks.AcquireInfo) (context.Context, func(hooks.AcquireResult)) {
			strike("Trace.Acquire")
			return ctx, func(hooks.AcquireResult) { strike("end of Trace.Acquire") }
		},
		Release: func(ctx, _ context.Context, _ hooks.HoldInfo) (context.Context, func(error)) {
			strike("Trace.Release")
			return ctx, end("Trace.Release")
		},
		Hold: func(context.Context, hooks.HoldInfo) func(error) {
			strike("Trace.Hold")
			return end("Trace.Hold")
		},
		Loss:  func(context.Context, hooks.HoldInfo, error) { strike("Trace.Loss") },
		Retry: func(context.Context, hooks.RetryInfo) { strike("Trace.Retry") },
	}
}

// A hook of one set that panics or ends its goroutine changes nothing: the calls of the other sets, before
// and behind it, and the contexts that they get, are as they are without it. The log says which hook it was,
// and why.
func TestBrokenHook(t *testing.T) {
	calls := func(between hooks.Trace, log *slog.Logger) (lines []string, word string) {
		var j journal
		var h Hooks
		h.calls.log = log
		h.Add(j.hooks("a"))
		h.Add(between)
		h.Add(j.hooks("c"))
		all(h.Load())
		return j.lines, h.Load().Traceparent(context.Background())
	}
	want, _ := calls(hooks.Trace{}, nil)
	for _, name := range []string{
		"Trace.Traceparent", "Trace.Request", "end of Trace.Request", "Trace.Watch", "end of Trace.Watch", "Trace.Acquire",
		"end of Trace.Acquire", "Trace.Release", "end of Trace.Release", "Trace.Hold", "end of Trace.Hold", "Trace.Loss", "Trace.Retry",
	} {
		for how, fate := range fates {
			synctest.Test(t, func(t *testing.T) {
				r := loglines.New()
				lines, word := calls(broken(name, fate), slog.New(r))
				if d := cmp.Diff(want, lines); d != "" || word != "a" {
					t.Errorf("%s %s: %s, %s", name, how, word, d)
				}
				if name == "Trace.Traceparent" { // the first set has the word, so this one is not asked
					return
				}
				got := r.With("turnstile goes on without it")
				if len(got) != 1 || got[0].Level != slog.LevelError || !strings.Contains(got[0].Text, "function=\""+name+"\"") &&
					!strings.Contains(got[0].Text, "function="+name+" ") || !strings.Contains(got[0].Text, "call_internal_test.go") {
					t.Errorf("%s %s: the log has %v", name, how, got)
				}
				if how == "panics" && len(got) == 1 && !strings.Contains(got[0].Text, "the hook's own words") {
					t.Errorf("%s: the log does not say why: %s", name, got[0].Text)
				}
			})
		}
	}
}

// A Traceparent hook that panics has no word, and the next one is asked.
func TestBrokenTraceparent(t *testing.T) {
	for how, fate := range fates {
		var h Hooks
		h.Add(broken("Trace.Traceparent", fate))
		h.Add(hooks.Trace{Traceparent: func(context.Context) string { return "the second" }})
		if got := h.Load().Traceparent(context.Background()); got != "the second" {
			t.Errorf("a hook %s: traceparent of %q", how, got)
		}
	}
}

// The log has one line a minute about each function that fails, with the number of failures that had none.
func TestBrokenHookIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := loglines.New()
		u := userCalls{log: slog.New(r)}
		fails := func(what string, n int) {
			for range n {
				u.call(what, runtime.Goexit)
			}
		}
		fails("one", 7)
		fails("other", 1)
		time.Sleep(reportEvery - 1)
		fails("one", 1)
		time.Sleep(time.Nanosecond)
		fails("one", 3)
		var got []string
		for _, l := range r.All() {
			_, text, _ := strings.Cut(l.Text, "function=")
			what, _, _ := strings.Cut(text, " ")
			_, more, _ := strings.Cut(text, "more=")
			got = append(got, what+" "+more)
		}
		if want := []string{"one 0", "other 0", "one 7"}; !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
	})
}

// Functions that call others, as hooks that look at locks do, wait for nobody, however deep.
func TestNestedUserCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		var u userCalls
		u.workers.init(end)
		var down func(n int)
		deepest := false
		down = func(n int) {
			if n == 0 {
				deepest = true
				return
			}
			u.call("nested", func() { down(n - 1) })
		}
		down(10 * idleWorkers)
		if !deepest {
			t.Error("not called")
		}
	})
}

// BenchmarkUserCall measures what a call of a hook costs beside a call in the goroutine of the caller.
func BenchmarkUserCall(b *testing.B) {
	end := make(chan struct{})
	var u userCalls
	u.workers.init(end)
	var n int
	b.Run("by call", func(b *testing.B) {
		for b.Loop() {
			u.call("bench", func() { n++ })
		}
	})
	b.Run("direct", func(b *testing.B) {
		f := func() { n++ }
		for b.Loop() {
			f()
		}
	})
	close(end)
}
