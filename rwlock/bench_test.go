package rwlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The rival is a plain zklock.Mutex in the place of the read-write lock, on the same server in the same run. The
// two take turns, round by round, since the machine's speed drifts. A benchmark reports the median of the rounds,
// and the median of the ratio of each round.

// do holds a lock while a function runs.
type do func(context.Context, func(context.Context) error) error

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

// one is a session and its locks.
type one struct {
	m                  *session.Manager
	write, read, mutex do
}

func open(b *testing.B, addr, path string) one {
	m := testserver.Connect(b, addr, long)
	rw := newLock(b, m, path+"-rw")
	mx, err := zklock.New(m, path+"-mutex")
	if err != nil {
		b.Fatal(err)
	}
	return one{m, rw.Do, rw.Reader().Do, mx.Do}
}

// cycles lets each session take its lock n times, all sessions at once, the k-th time with lock(k). It returns the
// time.
func cycles(b *testing.B, all []one, n int, lock func(o one, k int) do, work func(context.Context, one) error) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for i, o := range all {
		wg.Go(func() {
			for k := range n {
				err := lock(o, i+k)(context.Background(), func(ctx context.Context) error { return work(ctx, o) })
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func write(o one, _ int) do { return o.write }
func read(o one, _ int) do  { return o.read }
func mutex(o one, _ int) do { return o.mutex }

// mixed is nine reads for each write.
func mixed(o one, k int) do {
	if k%10 == 0 {
		return o.write
	}
	return o.read
}

func nothing(context.Context, one) error { return nil }

// ask is work that takes one round trip.
func ask(ctx context.Context, o one) error {
	s, err := o.m.Session(ctx)
	if err == nil {
		_, err = s.Exists(ctx, "/")
	}
	return err
}

// rounds is the least number of rounds, so that a round in which the machine did other work does not count.
func rounds() int {
	if testing.Short() {
		return 1 // it is enough to see that the benchmark runs
	}
	return 9
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// compare runs rounds of each in turn, and returns the median seconds of each and the
// median ratios to the last.
func compare(b *testing.B, each ...func() time.Duration) (seconds, ratio []float64) {
	times := make([][]float64, len(each))
	ratios := make([][]float64, len(each))
	for b.Loop() {
		for range rounds() {
			for i, f := range each {
				times[i] = append(times[i], f().Seconds())
			}
			last := times[len(each)-1]
			for i := range each {
				ratios[i] = append(ratios[i], times[i][len(last)-1]/last[len(last)-1])
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
	for i := range each {
		seconds, ratio = append(seconds, median(times[i])), append(ratio, median(ratios[i]))
	}
	return seconds, ratio
}

// BenchmarkUncontended measures one lock and unlock without contention.
func BenchmarkUncontended(b *testing.B) {
	const perRound = 10
	networks(b, func(b *testing.B, addr string) {
		us := []one{open(b, addr, "/bench/uncontended")}
		run := func(lock func(one, int) do) func() time.Duration {
			return func() time.Duration { return cycles(b, us, perRound, lock, nothing) / perRound }
		}
		for _, lock := range []func(one, int) do{write, read, mutex} {
			run(lock)()
		}
		seconds, ratio := compare(b, run(write), run(read), run(mutex))
		b.ReportMetric(seconds[0]*1e6, "write-µs")
		b.ReportMetric(seconds[1]*1e6, "read-µs")
		b.ReportMetric(seconds[2]*1e6, "Mutex-µs")
		b.ReportMetric(ratio[0], "write-time-ratio")
		b.ReportMetric(ratio[1], "read-time-ratio")
	})
}

// BenchmarkMixed measures acquisitions a second of ten sessions that always want the lock, nine times of ten to
// read, for work of one round trip. It compares them with those of a mutex.
func BenchmarkMixed(b *testing.B) {
	const sessions, perRound = 10, 10
	networks(b, func(b *testing.B, addr string) {
		var all []one
		for range sessions {
			all = append(all, open(b, addr, "/bench/mixed"))
		}
		run := func(lock func(one, int) do) func() time.Duration {
			return func() time.Duration { return cycles(b, all, perRound, lock, ask) }
		}
		run(mixed)()
		run(mutex)()
		seconds, ratio := compare(b, run(mixed), run(mutex))
		b.ReportMetric(sessions*perRound/seconds[0], "RWMutex-locks/s")
		b.ReportMetric(sessions*perRound/seconds[1], "Mutex-locks/s")
		b.ReportMetric(1/ratio[0], "rate-ratio")
	})
}
