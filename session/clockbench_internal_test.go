package session

import (
	"testing"
	"time"
)

// BenchmarkClock is what an answer that counts, and each question whether a hold is certain,
// costs the lease clock.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	k := newClock(start)
	k.setLease(time.Hour)
	b.Run("confirm", func(b *testing.B) {
		b.ReportAllocs()
		for at := start; b.Loop(); at = at.Add(1) {
			k.confirm(at)
		}
	})
	b.Run("remaining", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if k.remaining(time.Now()) <= 0 {
				b.Fatal("run out")
			}
		}
	})
}
