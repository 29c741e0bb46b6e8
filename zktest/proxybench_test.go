package zktest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

// BenchmarkRoundTrip shows what a proxy costs, and how true its delays are: a
// round trip should take twice the delay more than it does without.
func BenchmarkRoundTrip(b *testing.B) {
	e := zktest.StartReal(b)
	b.Run("direct", func(b *testing.B) { roundTrips(b, e.Addr(0), 1, func() {}) })
	for _, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		for _, clients := range []int{1, 10} {
			b.Run(fmt.Sprintf("delay=%v/clients=%d", delay, clients), func(b *testing.B) {
				p := zktest.StartProxy(b, e.Addr(0))
				roundTrips(b, p.Addr(), clients, func() { p.Delay(delay) })
			})
		}
	}
}

// roundTrips has each of so many clients ask b.N times, all at once.
func roundTrips(b *testing.B, addr string, clients int, connected func()) {
	conns := make([]*zk.Conn, clients)
	for i := range conns {
		conns[i], _ = connect(b, addr)
	}
	connected()
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, conn := range conns {
		wg.Go(func() {
			for range b.N {
				if _, _, err := conn.Exists("/"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}
