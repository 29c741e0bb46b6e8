// Command bounds measures the bounds of a connection (internal/wire/bounds.go), as they are compiled in: what a session with
// 1,000 busy locks does, what that does to another lock of the session, to its lease, and to another client of the
// server. It prints one row for each network. To compare bounds, change them and run it again:
//
//	go run ./bounds -name '16 alone'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/leastleft"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func main() {
	name := flag.String("name", "as it is", "of the row")
	span := flag.Duration("span", 10*time.Second, "how long to measure on each network")
	locks := flag.Int("locks", 1000, "busy locks of the session")
	burst := flag.Int("burst", 0, "goroutines that take one lock at once, on loopback, instead of the rest")
	flag.Parse()
	if err := run(os.Stdout, *name, *span, *locks, *burst); err != nil {
		fmt.Fprintln(os.Stderr, "bounds:", err)
		os.Exit(1)
	}
}

const heading = `| constants | network | locks a second | another lock, ms | its p99 | its unlock, ms | its p99 | neighbour's reads a second | alone | least lease left, s |
|---|---|---|---|---|---|---|---|---|---|
`

func run(out io.Writer, name string, span time.Duration, locks, burst int) (err error) {
	if span <= 0 || locks < 1 || burst < 0 || flag.NArg() > 0 {
		return fmt.Errorf("want a -span, at least one lock, and nothing else: %v %d %d %q", span, locks, burst, flag.Args())
	}
	e, err := zktest.NewReal()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if burst > 0 {
		return crowd(out, name, e.ConnectString(), burst)
	}
	fmt.Fprint(out, heading)
	for i, n := range networks {
		r, err := measure(e, n, fmt.Sprintf("/bounds%d", i), span, locks)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		fmt.Fprintf(out, "| %s | %s | %.0f | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f | %.1f |\n", name, n.name, r.locks,
			ms(r.lock, .5), ms(r.lock, .99), ms(r.unlock, .5), ms(r.unlock, .99), r.reads, r.readsAlone, r.left.Seconds())
	}
	return nil
}

// row is what was measured on one network.
type row struct {
	locks             float64         // of the busy ones, in a second
	lock, unlock      []time.Duration // of the other lock
	reads, readsAlone float64         // of the neighbour, in a second
	left              time.Duration   // of the lease of the session, at worst
}

// ms returns a quantile in milliseconds.
func ms(all []time.Duration, q float64) float64 {
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return float64(all[int(q*float64(len(all)-1))]) / float64(time.Millisecond)
}

func connect(addr string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return session.Connect(ctx, addr, session.WithLogger(slog.New(slog.DiscardHandler)), session.WithTickTime(2*time.Second))
}

// measure has all work at once for a while.
func measure(e *zktest.Ensemble, n network, dir string, span time.Duration, locks int) (r row, err error) {
	w, err := n.before(e.Addr(0))
	if err != nil {
		return r, err
	}
	m, err := connect(w.addr())
	if err != nil {
		return r, errors.Join(err, w.close())
	}
	neighbour, err := connect(e.Addr(0))
	if err != nil {
		return r, errors.Join(err, m.Close(), w.close())
	}
	defer func() { err = errors.Join(err, neighbour.Close(), m.Close(), w.close()) }()
	if r.readsAlone, err = reads(neighbour, span/4); err != nil {
		return r, err
	}
	s, err := m.Session(context.Background())
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var count atomic.Int64
	var all errgroup.Group
	for i := range locks {
		all.Go(func() error { return busy(ctx, m, fmt.Sprintf("%s/busy%d", dir, i), &count) })
	}
	all.Go(func() (err error) {
		r.lock, r.unlock, err = other(ctx, m, dir+"/other")
		return err
	})
	time.Sleep(span / 4) // until all have begun
	stop, begin, before := leastleft.Watch(s), time.Now(), count.Load()
	r.reads, err = reads(neighbour, span)
	r.locks = float64(count.Load()-before) / time.Since(begin).Seconds()
	r.left = stop()
	cancel()
	return r, errors.Join(err, all.Wait(), s.Err())
}

// busy takes a lock and gives it back, until ctx ends.
func busy(ctx context.Context, m *session.Manager, path string, count *atomic.Int64) error {
	mx, err := zklock.New(m, path)
	if err != nil {
		return err
	}
	for {
		switch err := mx.Lock(ctx); {
		case ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			return err
		}
		count.Add(1)
		if err := mx.Unlock(); err != nil {
			return err
		}
	}
}

// other takes another lock again and again, and measures that.
func other(ctx context.Context, m *session.Manager, path string) (locks, unlocks []time.Duration, err error) {
	mx, err := zklock.New(m, path)
	if err != nil {
		return nil, nil, err
	}
	for {
		begin := time.Now()
		switch err := mx.Lock(ctx); {
		case ctx.Err() != nil && err != nil:
			return locks, unlocks, nil
		case err != nil:
			return nil, nil, err
		}
		held := time.Now()
		if err := mx.Unlock(); err != nil {
			return nil, nil, err
		}
		locks, unlocks = append(locks, held.Sub(begin)), append(unlocks, time.Since(held))
	}
}

// reads returns how often in a second another client reads a node.
func reads(m *session.Manager, span time.Duration) (float64, error) {
	ctx := context.Background()
	s, err := m.Session(ctx)
	if err != nil {
		return 0, err
	}
	begin, n := time.Now(), 0
	for ; time.Since(begin) < span; n++ {
		if _, err := s.Exists(ctx, "/"); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

// crowd is how long it takes until many goroutines, which begin at once, have had one lock.
func crowd(out io.Writer, name, addr string, n int) (err error) {
	m, err := connect(addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := m.Session(context.Background())
	if err != nil {
		return err
	}
	var all errgroup.Group
	begin := make(chan struct{})
	var ready sync.WaitGroup
	ready.Add(n)
	for range n {
		all.Go(func() error {
			mx, err := zklock.New(m, "/crowd")
			ready.Done()
			if err != nil {
				return err
			}
			<-begin
			if err := mx.Lock(context.Background()); err != nil {
				return err
			}
			return mx.Unlock()
		})
	}
	ready.Wait()
	stop, start := leastleft.Watch(s), time.Now()
	close(begin)
	err = all.Wait()
	took := time.Since(start)
	fmt.Fprintf(out, "| %s | %d goroutines on one lock: %.1f s, least lease left %.1f s |\n", name, n, took.Seconds(), stop().Seconds())
	return errors.Join(err, s.Err())
}
