package zklock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The rival is zk.Lock of go-zookeeper, on the same server in the same run. The two take turns, round by
// round, since the machine's speed drifts. A benchmark reports the median of the rounds, and the median
// of the ratio of each round.

// locker is the common interface of both.
type locker interface {
	lock() error
	unlock() error
}

type ours struct{ m *zklock.Mutex }

func (o ours) lock() error   { return o.m.Lock(context.Background()) }
func (o ours) unlock() error { return o.m.Unlock() }

type rival struct{ l *zk.Lock }

func (r rival) lock() error   { return r.l.Lock() }
func (r rival) unlock() error { return r.l.Unlock() }

// networks are the ways to the server: straight, and with 1 ms each way.
func networks(b *testing.B, f func(b *testing.B, addr string)) {
	server := zktest.StartReal(b)
	b.Run("net=loopback", func(b *testing.B) { f(b, server.Addr(0)) })
	b.Run("net=1ms-each-way", func(b *testing.B) {
		p := zktest.StartProxy(b, server.Addr(0))
		p.Delay(time.Millisecond)
		f(b, p.Addr())
	})
}

func connectOurs(b *testing.B, addr, path string) locker {
	m := testserver.Connect(b, addr, session.WithTimeout(10*time.Second))
	l, err := zklock.New(m, path)
	if err != nil {
		b.Fatal(err)
	}
	return ours{l}
}

func connectRival(b *testing.B, addr, path string) locker {
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	return rival{zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// cycles takes and releases each lock n times, all locks at once, and returns the time.
func cycles(b *testing.B, locks []locker, n int) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for _, l := range locks {
		wg.Go(func() {
			for range n {
				if err := l.lock(); err != nil {
					b.Error(err)
					return
				}
				if err := l.unlock(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// rounds is the least number of rounds, so that a round in which the machine did other work does not
// count.
func rounds() int {
	if testing.Short() {
		return 1 // it is enough to see that the benchmark runs
	}
	return 9
}

// compare runs rounds of this package and of the rival in turn.
type compare struct{ ours, rival, ratio []float64 }

func (c *compare) round(ours, rival func() time.Duration) {
	o, r := ours().Seconds(), rival().Seconds()
	c.ours, c.rival, c.ratio = append(c.ours, o), append(c.rival, r), append(c.ratio, o/r)
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// BenchmarkUncontended measures one lock and unlock without contention.
func BenchmarkUncontended(b *testing.B) {
	networks(b, func(b *testing.B, addr string) {
		us := []locker{connectOurs(b, addr, "/bench/uncontended-ours")}
		them := []locker{connectRival(b, addr, "/bench/uncontended-rival")}
		cycles(b, us, 20)
		cycles(b, them, 20)
		const perRound = 10
		var c compare
		for b.Loop() {
			for range rounds() {
				c.round(
					func() time.Duration { return cycles(b, us, perRound) / perRound },
					func() time.Duration { return cycles(b, them, perRound) / perRound })
			}
		}
		b.ReportMetric(0, "ns/op") // of both together, which says nothing
		b.ReportMetric(median(c.ours)*1e6, "ours-µs")
		b.ReportMetric(median(c.rival)*1e6, "zk.Lock-µs")
		b.ReportMetric(median(c.ratio), "time-ratio")
	})
}

// BenchmarkHandover measures hand-overs a second, while ten sessions always want the lock.
func BenchmarkHandover(b *testing.B) {
	const sessions, perRound = 10, 10
	networks(b, func(b *testing.B, addr string) {
		var us, them []locker
		for range sessions {
			us = append(us, connectOurs(b, addr, "/bench/handover-ours"))
			them = append(them, connectRival(b, addr, "/bench/handover-rival"))
		}
		cycles(b, us, 2)
		cycles(b, them, 2)
		var c compare
		for b.Loop() {
			for range rounds() {
				c.round(
					func() time.Duration { return cycles(b, us, perRound) },
					func() time.Duration { return cycles(b, them, perRound) })
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(sessions*perRound/median(c.ours), "ours-handovers/s")
		b.ReportMetric(sessions*perRound/median(c.rival), "zk.Lock-handovers/s")
		b.ReportMetric(1/median(c.ratio), "rate-ratio")
	})
}

// BenchmarkLocalHandover measures hand-overs a second among 1,000 goroutines of one process: with a place
// in the queue for each goroutine, and with local hand-over in turns of 1,000.
func BenchmarkLocalHandover(b *testing.B) {
	const handovers = 1000
	goroutines := 1000
	if testing.Short() {
		goroutines = 100
	}
	networks(b, func(b *testing.B, addr string) {
		m := testserver.Connect(b, addr, session.WithTimeout(30*time.Second))
		each := shared(b, goroutines, newMutex(b, m, "/bench/each"))
		local := shared(b, goroutines, newMutex(b, m, "/bench/local", zklock.WithLocalHandover(handovers)))
		const eachTimes, localTimes = 1, 100
		cycles(b, each, eachTimes)
		cycles(b, local, localTimes)
		var c compare
		for b.Loop() {
			for range rounds() {
				c.round(
					func() time.Duration { return cycles(b, local, localTimes) / localTimes },
					func() time.Duration { return cycles(b, each, eachTimes) / eachTimes })
			}
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(goroutines)/median(c.ours), "local-handovers/s")
		b.ReportMetric(float64(goroutines)/median(c.rival), "default-handovers/s")
		b.ReportMetric(1/median(c.ratio), "rate-ratio")
	})
}

// shared returns one mutex for each of many goroutines.
func shared(b *testing.B, goroutines int, m *zklock.Mutex) []locker {
	b.Helper()
	return slices.Repeat([]locker{ours{m}}, goroutines)
}
