package queue_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
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
	for _, e := range []error{queue.ErrReleasePending, queue.ErrReleased, queue.ErrConflict, session.ErrLost, session.ErrClosed, context.Canceled} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return fmt.Sprint(err)
}

// nameless returns a node's name without its id.
func nameless(node string) string { return strings.TrimLeft(path.Base(node)[len("_c_")+36:], "-") }

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
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			d.write(ctx, "watch %s", nameless(w.Path))
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
		Loss: func(ctx context.Context, h session.HoldInfo, cause error) {
			d.write(ctx, "loss %s %s", nameless(h.Node), outcome(cause))
		},
	})
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// has waits for a line.
func (d *diary) has(t *testing.T, prefix string) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, prefix, func() bool {
		return slices.ContainsFunc(d.read(), func(l string) bool { return strings.HasPrefix(l, prefix) })
	})
}

// Each hook is called once, in order, with the right information.
func TestTrace(t *testing.T) {
	const first, second = "lock-0000000000", "lock-0000000001"
	for _, c := range []struct {
		what string
		do   func(t *testing.T, d *diary, q *queue.Queue, other *queue.Queue, p *zktest.Proxy, m *session.Manager)
		want []string
	}{
		{"contended", func(t *testing.T, d *diary, q, other *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			l, err := other.Acquire(patient(t), queue.Request{Kind: mutex, Data: []byte("who")})
			mustBe(t, err, nil)
			w := enter(t, q, 2)
			d.has(t, "watch ")
			release(t, l)
			release(t, w.get(t))
		}, []string{
			"acquire mutex DIR try=false",
			"watch " + first + " by caller",
			"watched <nil> by caller",
			"hold mutex " + second + " by caller",
			"acquired err=<nil> busy=false position=1 attempts=1 by caller",
			"held <nil> by caller",
			"release " + second + ", held by caller",
			"released <nil>",
		}},
		{"conflict", func(t *testing.T, _ *diary, q, _ *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			put(t, q.Path(), "lease-0000000000", "", 0)
			_, err := q.Acquire(patient(t), ask)
			mustBe(t, err, queue.ErrConflict)
		}, []string{
			"acquire mutex DIR try=false",
			"acquired err=" + queue.ErrConflict.Error() + " busy=false position=-1 attempts=1 by caller",
		}},
		{"node deleted while waiting", func(t *testing.T, d *diary, q, other *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			l, err := other.Acquire(patient(t), queue.Request{Kind: mutex, Data: []byte("who")})
			mustBe(t, err, nil)
			w := enter(t, q, 2)
			d.has(t, "watch ")
			testserver.Delete(t, q.Path(), newest(t, q.Path()))
			d.has(t, "watched its node was deleted")
			zktest.Eventually(t, testserver.Patience, "the second wait", func() bool { return len(d.read()) == 5 })
			release(t, l)
			release(t, w.get(t))
		}, []string{
			"acquire mutex DIR try=false",
			"watch " + first + " by caller",
			"watched its node was deleted by caller",
			"again 1 its node was deleted by caller",
			"watch " + first + " by caller",
			"watched <nil> by caller",
			"hold mutex lock-0000000002 by caller",
			"acquired err=<nil> busy=false position=1 attempts=2 by caller",
			"held <nil> by caller",
			"release lock-0000000002, held by caller",
			"released <nil>",
		}},
		{"pending release", func(t *testing.T, _ *diary, q, _ *queue.Queue, p *zktest.Proxy, _ *session.Manager) {
			l := acquire(t, q)
			hold := p.HoldRequest(ofContenders(q.Path(), zktest.OpDelete))
			ctx, cancel := context.WithCancel(context.WithValue(context.Background(), traceKey{}, "releaser"))
			cancel()
			mustBe(t, l.Release(ctx), queue.ErrReleasePending)
			hold.Release()
		}, []string{
			"acquire mutex DIR try=false",
			"hold mutex " + first + " by caller",
			"acquired err=<nil> busy=false position=0 attempts=1 by caller",
			"held <nil> by caller",
			"release " + first + ", held by caller by releaser",
			"released release not yet confirmed by releaser",
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			d := new(diary)
			q, proxy, m := proxied(t, dir, d.hooks())
			c.do(t, d, q, client(t, dir), proxy, m)
			for i := range c.want {
				c.want[i] = strings.ReplaceAll(c.want[i], "DIR", dir)
			}
			zktest.Eventually(t, testserver.Patience, "all hooks", func() bool { return len(d.read()) >= len(c.want) })
			if got := d.read(); !slices.Equal(got, c.want) {
				t.Errorf("the hooks were told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// By default a node's data names its process, and the trace of the caller.
func TestDefaultData(t *testing.T) {
	dir := persistentDir(t)
	q := client(t, dir, new(diary).hooks())
	l := acquire(t, q)
	data, _, err := testserver.Admin(t).Get(l.Path())
	if err != nil || !strings.HasPrefix(string(data), `{"id":"`) || !strings.HasSuffix(string(data), `,"traceparent":"00-trace-parent-01"}`) {
		t.Errorf("data %s, %v", data, err)
	}
	release(t, l)
	plain := acquire(t, client(t, dir))
	data, _, err = testserver.Admin(t).Get(plain.Path())
	if err != nil || strings.Contains(string(data), "traceparent") {
		t.Errorf("data %s, %v", data, err)
	}
	release(t, plain)
}

// reader and writer are the two kinds of a read-write lock. A reader is in the way of writers alone.
var reader, writer = rwKind(false), rwKind(true)

func rwKind(writes bool) *queue.Kind {
	kind := &queue.Kind{
		Name:     "read",
		Prefixes: []string{queue.PrefixRead, queue.PrefixWrite},
		Policy: func(queue.Node) queue.Policy {
			return queue.Policy{Weight: func(ahead queue.Node) int {
				if writes || ahead.Prefix == queue.PrefixWrite {
					return 1
				}
				return 0
			}}
		},
	}
	if writes {
		kind.Name = "write"
	}
	return kind
}

// The Watch hook names a node that stands: the one that the error of the wait would name. When that node is gone and the
// contender waits for others, the hook is called with another.
func TestWatchNamesWhoStands(t *testing.T) {
	read := func(who string) queue.Request {
		return queue.Request{Kind: reader, Prefix: queue.PrefixRead, Data: []byte(who)}
	}
	lock := func(who string) queue.Request { return queue.Request{Kind: mutex, Data: []byte(who)} }
	for _, c := range []struct {
		what          string
		first, second queue.Request
		mine          queue.Request
		held          bool // the second too, while the first holds
		want          []string
	}{
		{"a writer behind two readers", read("old"), read("young"), queue.Request{Kind: writer, Prefix: queue.PrefixWrite}, true, []string{
			"watch __READ__0000000000 by caller", "watched <nil> by caller",
			"watch __READ__0000000001 by caller", "watched <nil> by caller",
		}},
		{"a waiter of a mutex behind another", lock("holder"), lock("waiter"), ask, false, []string{
			"watch lock-0000000000 by caller", "watched <nil> by caller",
			"watch lock-0000000001 by caller", "watched <nil> by caller",
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			d := new(diary)
			q, others := client(t, dir, d.hooks(), session.WithTimeout(time.Minute)), client(t, dir)
			first, err := others.Acquire(patient(t), c.first)
			mustBe(t, err, nil)
			second := begin(t, others, c.second)
			if c.held {
				second.get(t)
			}
			testserver.WaitChildren(t, dir, 2)
			me := begin(t, q, c.mine)
			d.has(t, c.want[0])
			release(t, first)
			if !c.held {
				second.get(t)
			}
			d.has(t, c.want[2])
			me.waits(t, "the second holds")
			release(t, second.lease)
			release(t, me.get(t))
			got := slices.DeleteFunc(d.read(), func(l string) bool { return !strings.HasPrefix(l, "watch") })
			if !slices.Equal(got, c.want) {
				t.Errorf("the hook was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// A Hold hook gets the lease. If the lease ends before the hook returns, the function that the hook
// returns is called all the same, once.
func TestLeaseEndsInHoldHook(t *testing.T) {
	var ends []error
	q := client(t, testserver.Path(t), session.WithTrace(session.Trace{
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			l, ok := queue.LeaseFrom(ctx)
			if !ok {
				t.Error("the hook got no lease")
				return nil
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = l.Release(patient(t)) // by somebody who got the lease from the hook
			}()
			<-ended
			return func(err error) { ends = append(ends, err) }
		},
	}))
	l, err := q.Acquire(patient(t), queue.Request{Kind: mutex})
	mustBe(t, err, nil)
	mustBe(t, l.Err(), queue.ErrReleased)
	if len(ends) != 1 || ends[0] != nil {
		t.Errorf("the hook was told %v, want a release, once", ends)
	}
}

// Hooks that are added to a running manager are told the label of an acquisition and of its hold, and the traceparent that
// earlier hooks have for it: that of the context which their Acquire hook has returned.
func TestAddedHooksKnowLabelAndTraceparent(t *testing.T) {
	type spanKey struct{}
	var acquired, own session.AcquireInfo
	var held, lost, released session.HoldInfo
	q, _, m := proxied(t, testserver.Path(t), session.WithTrace(session.Trace{
		Traceparent: func(ctx context.Context) string { span, _ := ctx.Value(spanKey{}).(string); return span },
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			own = a
			return context.WithValue(ctx, spanKey{}, "a span"), nil
		},
	}))
	losses := make(chan struct{}, 1)
	m.AddTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			acquired = a
			return ctx, nil
		},
		Hold: func(_ context.Context, h session.HoldInfo) func(error) { held = h; return nil },
		Release: func(ctx, _ context.Context, h session.HoldInfo) (context.Context, func(error)) {
			released = h
			return ctx, nil
		},
		Loss: func(_ context.Context, h session.HoldInfo, _ error) { lost = h; losses <- struct{}{} },
	})
	first, err := q.Acquire(queue.WithLabel(patient(t), "request 42"), ask)
	mustBe(t, err, nil)
	release(t, first)
	second, err := q.Acquire(queue.WithLabel(patient(t), "request 43"), ask)
	mustBe(t, err, nil)
	if acquired.Label != "request 43" || acquired.Traceparent != "a span" || own.Label != "request 43" || own.Traceparent != "" {
		t.Errorf("Acquire: added %+v, own %+v", acquired, own)
	}
	if held.Label != "request 43" || released.Label != "request 42" {
		t.Errorf("Hold: %+v; Release: %+v", held, released)
	}
	testserver.Delete(t, second.Path())
	if _, err := second.Token(patient(t)); !errors.Is(err, session.ErrLost) {
		zktest.Eventually(t, testserver.Patience, "the loss", func() bool { return second.Err() != nil })
	}
	<-losses
	if lost.Label != "request 43" {
		t.Errorf("Loss: %+v", lost)
	}
}
