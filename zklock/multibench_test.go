package zklock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

type several struct{ m *zklock.MultiLock }

func (s several) lock() error   { return s.m.Lock(context.Background()) }
func (s several) unlock() error { return s.m.Unlock() }

// BenchmarkMulti measures one lock and unlock of several mutexes at once, beside those of a single mutex.
// There is no contention.
func BenchmarkMulti(b *testing.B) {
	networks(b, func(b *testing.B, addr string) {
		for _, n := range []int{2, 10} {
			b.Run(fmt.Sprintf("locks=%d", n), func(b *testing.B) {
				m := testserver.Connect(b, addr, session.WithTimeout(10*time.Second))
				var parts []zklock.ContextLocker
				for i := range n {
					parts = append(parts, newMutex(b, m, fmt.Sprintf("/bench/multi-%d", i)))
				}
				all := []locker{several{newMulti(b, parts...)}}
				one := []locker{ours{newMutex(b, m, "/bench/multi-one")}}
				const perRound = 10
				cycles(b, all, 20)
				cycles(b, one, 20)
				var c compare
				for b.Loop() {
					for range rounds() {
						c.round(
							func() time.Duration { return cycles(b, all, perRound) / perRound },
							func() time.Duration { return cycles(b, one, perRound) / perRound })
					}
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(c.ours)*1e6, "multi-µs")
				b.ReportMetric(median(c.rival)*1e6, "one-µs")
				b.ReportMetric(median(c.ratio), "time-ratio")
			})
		}
	})
}
