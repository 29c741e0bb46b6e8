package clock

import (
	"testing"
	"time"
)

// BenchmarkClock measures what the lease clock costs for each answer that counts and for each
// call that asks whether a hold is certain, and what Now costs with and without suspensions.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	k := New(start)
	k.SetLease(time.Hour)
	b.Run("prove", func(b *testing.B) {
		b.ReportAllocs()
		for at := start; b.Loop(); at = at.Add(1) {
			k.Prove(at)
		}
	})
	b.Run("remaining", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if k.Remaining(Now(), true) <= 0 {
				b.Fatal("run out")
			}
		}
	})
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
	b.Run("proof", func(b *testing.B) {
		tr := trail{half: time.Second}
		tr.begin(start, start, 10*time.Second)
		b.ReportAllocs()
		for at := start; b.Loop(); at = at.Add(time.Millisecond) {
			tr.answered(at, at.Add(time.Millisecond), true)
			_ = tr.proof(at)
		}
	})
}
