package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// A recorder notes what the hooks of a process are told, in order, and counts which of them wait for their end.
type recorder struct {
	mu     sync.Mutex
	events []string
	open   map[string]int // requests and watches, too
}

// begin notes the beginning of something. The function notes its end.
func (r *recorder) begin(what string) (end func(event string)) {
	r.add(what, what, 1)
	return func(event string) { r.add(what, event, -1) }
}

func (r *recorder) add(what, event string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[string]int)
	}
	r.open[what] += by
	if what != "request" && what != "watch" {
		r.events = append(r.events, event)
	}
}

// balanced wants everything that has begun to have ended, once.
func (r *recorder) balanced(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, n := range r.open {
		if n != 0 {
			t.Errorf("hook of %s: %d more have begun than ended; %q", what, n, r.events)
		}
	}
}

// take returns what happened since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

func outcome(what string, err error) string {
	switch {
	case err == nil:
		return what
	case errors.Is(err, session.ErrLost):
		return what + ": lost"
	case errors.Is(err, context.Canceled):
		return what + ": cancelled"
	}
	return what + ": " + err.Error()
}

func (r *recorder) trace() session.Option {
	return session.WithTrace(session.Trace{
		Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			end := r.begin("request")
			return ctx, func(error) { end("") }
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			end := r.begin("watch")
			return ctx, func(error) { end("") }
		},
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			end := r.begin("acquire")
			return ctx, func(a session.AcquireResult) {
				if a.Busy {
					end("acquired: busy")
				} else {
					end(outcome("acquired", a.Err))
				}
			}
		},
		Hold: func(context.Context, session.HoldInfo) func(error) {
			end := r.begin("hold")
			return func(err error) { end(outcome("held", err)) }
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			end := r.begin("release")
			return ctx, func(err error) { end(outcome("released", err)) }
		},
		Loss: func(context.Context, session.HoldInfo, error) { r.add("loss", "loss", 0) },
	})
}

// wantEvents wants these events in this order. Of several nodes, each has the events of its own, as often as it tries.
func (w *world) wantEvents(what string, got, want []string) {
	w.Helper()
	if w.subject.Nodes > 1 {
		got, want = slices.Compact(slices.Sorted(slices.Values(got))), slices.Sorted(slices.Values(want))
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s: hooks %q, want %q", what, got, want)
	}
}

// The hooks are told of what happens in order, with the outcome. In every case, what they are told of ends once.
func hooks(t *testing.T, s Subject) {
	eachCall(t, s, func(w *world, c call) {
		p, rival := w.process(), w.rival()
		h := p.take(c.of(p))
		w.Want("release", h.end(), nil)
		synctest.Wait()
		w.wantEvents("taken", p.hooks.take(), []string{"acquire", "hold", "acquired", "held", "release", "released"})
		w.gone("between", 0)
		release := rival.holds()
		ctx, cancel := context.WithCancel(w.Context())
		call := c.of(p).begin(ctx)
		w.Pass(time.Second)
		cancel()
		_, _ = call.wait()
		w.Pass(time.Second)
		if s.Nodes > 1 { // one that looks at all of them, or goes for all of them first, may tell as it likes
			release()
			return
		}
		want := []string{"acquire", "acquired: cancelled"}
		if c.try {
			want[1] = "acquired: busy"
		}
		w.wantEvents("not taken", p.hooks.take(), want)
		release()
	})
}

// The hooks of a loss come in order, before those of the release that follows it.
func hooksOfLoss(t *testing.T, s Subject) {
	eachCall(t, s, func(w *world, c call) {
		p := w.process()
		h := p.take(c.of(p))
		p.Lose(p.m)
		w.wantEvents("lost", p.hooks.take(), []string{"acquire", "hold", "acquired", "loss", "held: lost"})
		w.Want("release", h.end(), session.ErrLost)
		w.Pass(time.Second)
		w.wantEvents("released", p.hooks.take(), []string{"release", "released: lost"})
	})
}
