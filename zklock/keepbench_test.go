package zklock_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zklock"
)

// A Lock and Unlock that use a kept place again.
func BenchmarkKept(b *testing.B) {
	m := testserver.Connect(b, testserver.Server(b).ConnectString())
	mx, err := zklock.New(m, testserver.Path(b), zklock.WithLazyRelease(time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := mx.Lock(ctx); err != nil {
			b.Fatal(err)
		}
		if err := mx.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}
