package size

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// take takes and gives back a lock.
func take(ctx context.Context, m *session.Manager, path string) error {
	mx, err := zklock.New(m, path)
	if err != nil {
		return err
	}
	return mx.Do(ctx, func(context.Context) error { return nil })
}

// Thousands of goroutines of one session want one lock at the same time. The default limit is 8192 nodes. A server with
// half of the heap serves them too.
func TestOneLock(t *testing.T) {
	for _, heap := range longtest.Pick([]string{"256m"}, []string{"256m", "128m"}) {
		t.Run(heap, func(t *testing.T) { oneLock(t, zktest.Environ("_JAVA_OPTIONS", "-Xmx"+heap)) })
	}
}

func oneLock(t *testing.T, opts ...zktest.RealOption) {
	e := server(t, opts...)
	u, neighbour := newUser(t, e.ConnectString()), newUser(t, e.ConnectString())
	n := longtest.Pick(300, 8000)
	neighbour.during("an idle neighbour", func(context.Context) {
		u.during(fmt.Sprint(n, " goroutines on one lock"), func(ctx context.Context) {
			each(t, n, func(int) error { return take(ctx, u.Manager, "/one") })
		})
	})
}

// As many share one Mutex object. Each has a node of its own, or they hand one place on. All are served, one at a time.
func TestOneObject(t *testing.T) {
	longtest.InCI(t)
	for name, opts := range map[string][]zklock.Option{"own nodes": nil, "handed on": {zklock.WithLocalHandover(100)}} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, server(t).ConnectString())
			mx, err := zklock.New(u.Manager, "/object", opts...)
			must(t, err)
			n := longtest.Pick(300, 8000)
			var inside, served atomic.Int64
			u.during(fmt.Sprint(n, " goroutines on one object, ", name), func(ctx context.Context) {
				each(t, n, func(int) error {
					return mx.Do(ctx, func(ctx context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two hold at once")
						}
						served.Add(1)
						inside.Add(-1)
						return ctx.Err()
					})
				})
			})
			if got := served.Load(); got != int64(n) {
				t.Errorf("%d of %d were served", got, n)
			}
		})
	}
}

// A session that is full of locks gives all of them back at once. The deletes do not keep its heartbeats waiting.
func TestManyReleases(t *testing.T) {
	u := newUser(t, server(t).ConnectString())
	leases := make([]*queue.Lease, longtest.Pick(300, 8191)) // newUser holds one more
	u.during(fmt.Sprint(len(leases), " locks"), func(ctx context.Context) {
		each(t, len(leases), func(i int) error {
			mx, err := zklock.New(u.Manager, fmt.Sprint("/held/", i))
			if err == nil {
				leases[i], err = mx.Acquire(ctx)
			}
			return err
		})
	})
	if t.Failed() {
		return
	}
	u.during("their releases", func(ctx context.Context) {
		each(t, len(leases), func(i int) error { return leases[i].Release(ctx) })
	})
}
