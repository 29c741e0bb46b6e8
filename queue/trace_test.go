package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// diary records the calls of hooks, a line each, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

type traceKey struct{}

func (d *diary) write(ctx context.Context, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if v := ctx.Value(traceKey{}); v != nil {
		line += fmt.Sprint(" by ", v)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// outcome is a word for an error.
func outcome(err error) string {
	for _, e := range []error{queue.ErrReleasePending, queue.ErrConflict} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return fmt.Sprint(err)
}

func (d *diary) hooks() session.Option {
	return session.WithTrace(session.Trace{
		Traceparent: func(context.Context) string { return "00-trace-parent-01" },
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			d.write(ctx, "acquire %s %s try=%v", a.Kind, a.Path, a.Try)
			ctx = context.WithValue(ctx, traceKey{}, "caller")
			return ctx, func(r session.AcquireResult) {
				d.write(ctx, "acquired err=%s busy=%v position=%d attempts=%d", outcome(r.Err), r.Busy, r.Position, r.Attempts)
			}
		},
		Watch: func(ctx context.Context, i session.WatchInfo) (context.Context, func(error)) {
			d.write(ctx, "watch %s", nameless(i.Path))
			return ctx, func(err error) { d.write(ctx, "watched %s", outcome(err)) }
		},
		Hold: func(ctx context.Context, h session.HoldInfo) func(error) {
			d.write(ctx, "hold %s %s", h.Kind, nameless(h.Node))
			return func(err error) { d.write(ctx, "held %s", outcome(err)) }
		},
		Release: func(ctx, holder context.Context, h session.HoldInfo) (context.Context, func(error)) {
			d.write(ctx, "release %s, held by %v", nameless(h.Node), holder.Value(traceKey{}))
			return ctx, func(err error) { d.write(ctx, "released %s", outcome(err)) }
		},
		Retry: func(ctx context.Context, r session.RetryInfo) {
			if r.Op == "acquire" { // requests have their own reasons
				d.write(ctx, "again %d %s", r.Try, outcome(r.Cause))
			}
		},
	})
}

// Each hook is called once, in order, with the right information. The Watch hook names a node that stands: the one that the
// error of the wait would name. It is not called again while that node stands. When it is gone and the contender waits for
// others, the hook is called with another.
func TestTrace(t *testing.T) {
	const first, second, third = "lock-0000000000", "lock-0000000001", "lock-0000000002"
	acquired := func(err error, position, attempts int) string {
		return fmt.Sprintf("acquired err=%s busy=false position=%d attempts=%d by caller", outcome(err), position, attempts)
	}
	released := func(node string) []string {
		return []string{"held <nil> by caller", "release " + node + ", held by caller", "released <nil>"}
	}
	for what, c := range map[string]struct {
		do   func(w world, q, other *queue.Queue)
		want []string
	}{
		"contended": {func(w world, q, other *queue.Queue) {
			l := w.acquire(other)
			c := w.begin(q, ask)
			w.release(l)
			w.release(c.Get())
		}, append([]string{
			"acquire mutex " + dir + " try=false", "watch " + first + " by caller", "watched <nil> by caller",
			"hold mutex " + second + " by caller", acquired(nil, 1, 1),
		}, released(second)...)},
		"conflict": {func(w world, q, _ *queue.Queue) {
			w.Make(dir+"/lease-0000000000", "")
			w.Want("Acquire", expect.Err(q.Acquire(w.Context(), ask)), queue.ErrConflict)
		}, []string{"acquire mutex " + dir + " try=false", acquired(queue.ErrConflict, -1, 1)}},
		"node deleted while waiting": {func(w world, q, other *queue.Queue) {
			l := w.acquire(other)
			c := w.begin(q, ask)
			w.Remove(w.Nodes(dir)[1])
			w.release(l)
			w.release(c.Get())
		}, append([]string{
			"acquire mutex " + dir + " try=false", "watch " + first + " by caller", "watched its node was deleted by caller",
			"again 1 its node was deleted by caller", "watch " + first + " by caller", "watched <nil> by caller",
			"hold mutex " + third + " by caller", acquired(nil, 1, 2),
		}, released(third)...)},
		"pending release": {func(w world, q, _ *queue.Queue) {
			l := w.acquire(q)
			hold := w.HoldRequest(zktest.On(zktest.OpDelete, dir))
			ctx, cancel := context.WithCancel(context.WithValue(w.Context(), traceKey{}, "releaser"))
			cancel()
			w.Want("Release", l.Release(ctx), queue.ErrReleasePending)
			hold.Release()
		}, []string{
			"acquire mutex " + dir + " try=false", "hold mutex " + first + " by caller", acquired(nil, 0, 1), "held <nil> by caller",
			"release " + first + ", held by caller by releaser", "released release not yet confirmed by releaser",
		}},
		"a writer behind two readers, the old one leaves": {func(w world, q, other *queue.Queue) {
			old, young := w.take(other, reads), w.take(other, reads)
			c := w.begin(q, write)
			w.release(old)
			c.Waits("one reads")
			w.release(young)
			w.release(c.Get())
		}, append([]string{
			"acquire write " + dir + " try=false", "watch __READ__0000000000 by caller", "watched <nil> by caller",
			"watch __READ__0000000001 by caller", "watched <nil> by caller",
			"hold write __WRIT__0000000002 by caller", acquired(nil, 2, 1),
		}, released("__WRIT__0000000002")...)},
		"a writer behind two readers, the young one leaves": {func(w world, q, other *queue.Queue) {
			old, young := w.take(other, reads), w.take(other, reads)
			c := w.begin(q, write)
			w.release(young)
			c.Waits("one reads")
			w.release(old)
			w.release(c.Get())
		}, append([]string{
			"acquire write " + dir + " try=false", "watch __READ__0000000000 by caller", "watched <nil> by caller",
			"hold write __WRIT__0000000002 by caller", acquired(nil, 2, 1),
		}, released("__WRIT__0000000002")...)},
		"a waiter behind another": {func(w world, q, other *queue.Queue) {
			l := w.acquire(other)
			next, c := w.begin(other, ask), w.begin(q, ask)
			w.release(l)
			l = next.Get()
			c.Waits("the next holds")
			w.release(l)
			w.release(c.Get())
		}, append([]string{
			"acquire mutex " + dir + " try=false", "watch " + first + " by caller", "watched <nil> by caller",
			"watch " + second + " by caller", "watched <nil> by caller", "hold mutex " + third + " by caller", acquired(nil, 2, 1),
		}, released(third)...)},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(w world) {
				d := new(diary)
				c.do(w, w.queue(d.hooks()), w.queue())
				w.Pass(0)
				if !slices.Equal(d.lines, c.want) {
					t.Errorf("the hooks were told\n%s\nwant\n%s", strings.Join(d.lines, "\n"), strings.Join(c.want, "\n"))
				}
			})
		})
	}
}

// By default a node's data names its process, and the trace of the caller.
func TestDefaultData(t *testing.T) {
	run(t, func(w world) {
		l := w.acquire(w.queue(new(diary).hooks()))
		data := w.Data(l.Path())
		if !strings.HasPrefix(data, `{"id":"`) || !strings.HasSuffix(data, `,"traceparent":"00-trace-parent-01"}`) {
			t.Errorf("data %s", data)
		}
		w.release(l)
		if data := w.Data(w.acquire(w.queue()).Path()); strings.Contains(data, "traceparent") {
			t.Errorf("data %s", data)
		}
	})
}

// A Hold hook gets the lease. If the lease ends before the hook returns, the function that the hook
// returns is called all the same, once.
func TestLeaseEndsInHoldHook(t *testing.T) {
	run(t, func(w world) {
		var ends []error
		l := w.acquire(w.queue(session.WithTrace(session.Trace{
			Acquire: func(context.Context, session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				return nil, nil // a hook need not return a context
			},
			Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
				if l, ok := queue.LeaseFrom(ctx); ok {
					_ = l.Release(w.Context())
				} else {
					t.Error("the hook got no lease")
				}
				return func(err error) { ends = append(ends, err) }
			},
		})))
		w.Want("the lease", l.Err(), queue.ErrReleased)
		if len(ends) != 1 || ends[0] != nil {
			t.Errorf("the hook was told %v, want a release, once", ends)
		}
	})
}

// Hooks that are added to a running manager are told the label of an acquisition and of its hold, and the traceparent that
// earlier hooks have for it: that of the context which their Acquire hook has returned.
func TestAddedHooksKnowLabelAndTraceparent(t *testing.T) {
	run(t, func(w world) {
		type spanKey struct{}
		var acquired, own session.AcquireInfo
		var held, lost, released session.HoldInfo
		q := w.queue(session.WithTrace(session.Trace{
			Traceparent: func(ctx context.Context) string { span, _ := ctx.Value(spanKey{}).(string); return span },
			Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				own = a
				return context.WithValue(ctx, spanKey{}, "a span"), nil
			},
		}))
		q.Manager().AddTrace(session.Trace{
			Acquire: func(_ context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				acquired = a
				return nil, nil // which leaves the context as it is
			},
			Hold: func(_ context.Context, h session.HoldInfo) func(error) { held = h; return nil },
			Release: func(_, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
				released = h
				return nil, nil
			},
			Loss: func(_ context.Context, h session.HoldInfo, _ error) { lost = h },
		})
		for _, label := range []string{"request 42", "request 43"} {
			l, err := q.Acquire(queue.WithLabel(w.Context(), label), ask)
			w.Must(err)
			if acquired.Label != label || acquired.Traceparent != "a span" || own.Label != label || own.Traceparent != "" || held.Label != label {
				t.Errorf("Acquire: added %+v, own %+v; Hold: %+v", acquired, own, held)
			}
			if label == "request 42" {
				w.release(l)
			} else {
				w.token(l) // it watches its node
				w.Remove(l.Path())
			}
		}
		if released.Label != "request 42" || lost.Label != "request 43" {
			t.Errorf("Release: %+v; Loss: %+v", released, lost)
		}
	})
}
