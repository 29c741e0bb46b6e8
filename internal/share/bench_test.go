package share

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// A kept turn that is used again.
func BenchmarkKept(b *testing.B) {
	m := testserver.Connect(b, testserver.Server(b).ConnectString())
	q, err := queue.New(m, testserver.Path(b))
	if err != nil {
		b.Fatal(err)
	}
	s := NewTurns(q, queue.Request{Kind: queue.Mutex()}, 0, time.Minute)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		l, err := s.Acquire(ctx, false)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
