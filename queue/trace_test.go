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
		{"uncontended", func(t *testing.T, _ *diary, q, _ *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			release(t, acquire(t, q))
		}, []string{
			"acquire mutex DIR try=false",
			"hold mutex " + first + " by caller",
			"acquired err=<nil> busy=false position=0 attempts=1 by caller",
			"held <nil> by caller",
			"release " + first + ", held by caller",
			"released <nil>",
		}},
		{"contended", func(t *testing.T, d *diary, q, other *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			l, err := other.Acquire(patient(t), queue.Request{Kind: mutex, Data: []byte("who")})
			if err != nil {
				t.Fatal(err)
			}
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
		{"cancelled", func(t *testing.T, d *diary, q, other *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			l, err := other.Acquire(patient(t), queue.Request{Kind: mutex, Data: []byte("who")})
			if err != nil {
				t.Fatal(err)
			}
			w := enter(t, q, 2)
			d.has(t, "watch ")
			w.cancel()
			w.wait(t)
			release(t, l)
		}, []string{
			"acquire mutex DIR try=false",
			"watch " + first + " by caller",
			"watched context canceled by caller",
			"acquired err=context canceled busy=false position=1 attempts=1 by caller",
		}},
		{"busy", func(t *testing.T, _ *diary, q, other *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			l := acquire(t, other)
			_, err := q.TryAcquire(patient(t), ask)
			mustBe(t, err, queue.ErrBusy)
			release(t, l)
		}, []string{
			"acquire mutex DIR try=true",
			"acquired err=<nil> busy=true position=1 attempts=1 by caller",
		}},
		{"conflict", func(t *testing.T, _ *diary, q, _ *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			put(t, q.Path(), "lease-0000000000", "", 0)
			_, err := q.Acquire(patient(t), ask)
			mustBe(t, err, queue.ErrConflict)
		}, []string{
			"acquire mutex DIR try=false",
			"acquired err=" + queue.ErrConflict.Error() + " busy=false position=-1 attempts=1 by caller",
		}},
		{"lost", func(t *testing.T, d *diary, q, _ *queue.Queue, p *zktest.Proxy, m *session.Manager) {
			l := acquire(t, q)
			expire(t, p, m)
			await(t, l.Done(), "Done")
			d.has(t, "held ") // Done is closed before the hooks are told
			mustBe(t, l.Release(patient(t)), session.ErrLost)
		}, []string{
			"acquire mutex DIR try=false",
			"hold mutex " + first + " by caller",
			"acquired err=<nil> busy=false position=0 attempts=1 by caller",
			"loss " + first + " lost by caller",
			"held lost by caller",
			"release " + first + ", held by caller",
			"released lost",
		}},
		{"node deleted while waiting", func(t *testing.T, d *diary, q, other *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			l, err := other.Acquire(patient(t), queue.Request{Kind: mutex, Data: []byte("who")})
			if err != nil {
				t.Fatal(err)
			}
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
		{"ended before it began", func(t *testing.T, _ *diary, q, _ *queue.Queue, _ *zktest.Proxy, _ *session.Manager) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := q.Acquire(ctx, ask)
			mustBe(t, err, context.Canceled)
		}, nil},
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
