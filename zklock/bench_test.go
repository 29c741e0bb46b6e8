package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
)

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
