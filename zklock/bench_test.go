package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Do without hooks, and with every kind of hook, each of which does nothing. The two take turns in one run, since
// the machine's speed drifts; the ratio is that of all rounds.
func BenchmarkHooks(b *testing.B) {
	server := testserver.Server(b)
	nothing := func(ctx context.Context) (context.Context, func(error)) { return ctx, func(error) {} }
	hooks := session.WithTrace(session.Trace{
		Traceparent: func(context.Context) string { return "" },
		Request:     func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) { return nothing(ctx) },
		Watch:       func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) { return nothing(ctx) },
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return ctx, func(session.AcquireResult) {}
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) { return nothing(ctx) },
		Hold:    func(context.Context, session.HoldInfo) func(error) { return func(error) {} },
		Loss:    func(context.Context, session.HoldInfo, error) {},
		Retry:   func(context.Context, session.RetryInfo) {},
		Job:     func(context.Context, session.JobInfo) {},
		State:   func(session.Change) {},
	})
	without := newMutex(b, testserver.Connect(b, server.ConnectString()), testserver.Path(b))
	with := newMutex(b, testserver.Connect(b, server.ConnectString(), hooks), testserver.Path(b))
	work := func(context.Context) error { return nil }
	var took [2]time.Duration
	for b.Loop() {
		for i, mx := range []*zklock.Mutex{without, with} {
			began := time.Now()
			for range 100 {
				if err := mx.Do(b.Context(), work); err != nil {
					b.Fatal(err)
				}
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "with/without")
}

// Do of a Keyed beside Do of a Mutex at the same path. Places are kept, so there is no request, and all that differs is the
// Keyed's own. The key that nobody uses is that of a call that makes a Mutex and forgets it, without a request.
func BenchmarkKeyed(b *testing.B) {
	m := testserver.Connect(b, testserver.Server(b).ConnectString())
	k := newKeyed(b, m, testserver.Path(b), zklock.WithLazyRelease(time.Minute))
	mx := newMutex(b, m, k.Path("mutex"), zklock.WithLazyRelease(time.Minute))
	work := func(context.Context) error { return nil }
	for _, way := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"mutex", func(ctx context.Context) error { return mx.Do(ctx, work) }},
		{"keyed", func(ctx context.Context) error { return k.Do(ctx, "keyed", work) }},
		{"unused", func(context.Context) error { k.Held("unused"); return nil }},
	} {
		b.Run(way.name, func(b *testing.B) {
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if err := way.do(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
