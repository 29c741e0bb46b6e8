package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	clients       = 6
	workersEach   = 6
	loadPhase     = 8 * time.Second
	sampleEvery   = time.Second // under load; rarer in a long run
	mostSamples   = 1000        // under load, whatever the time
	serverTick    = 200 * time.Millisecond
	containerTick = 500 * time.Millisecond
)

// soak is a run of cycles. Each has a load with faults, and then settles. After that all has to be as
// before the first cycle.
type soak struct {
	ensemble *zktest.Ensemble
	seed     uint64
	start    time.Time

	referee *referee.Referee
	tally   *tally
	checker *client   // straight to the server, and idle under load
	clients []*client // the last is closed in each cycle, the others live to the end

	base    sample   // before any load
	loaded  []sample // under load
	settled []sample
	every   time.Duration // between samples under load

	slowestSettle, slowestEntry time.Duration
}

func newSoak(length time.Duration, seed uint64) (_ *soak, err error) {
	s := &soak{seed: seed, referee: referee.New(), tally: newTally(), every: max(sampleEvery, length/mostSamples)}
	// Allocated beforehand, so that the samples do not make the heap grow.
	s.loaded = make([]sample, 0, 2*mostSamples)
	s.settled = make([]sample, 0, 2+length/loadPhase)
	s.ensemble, err = newServer()
	if err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *soak) connect() (err error) {
	checker := &client{name: "the checker"}
	if err := checker.connect(s.server()); err != nil {
		return err
	}
	s.checker = checker
	for i := range clients {
		var opts []session.Option
		if i == 0 { // one with Curator's stricter policy
			opts = append(opts, session.WithLossOnSuspend())
		}
		var resolver *rand.Rand
		if i == 2 {
			resolver = rand.New(rand.NewPCG(s.seed, 0))
		}
		if i == 3 {
			opts = append(opts, login)
		}
		c, err := newClient(s.server(), fmt.Sprint("client ", i), resolver, opts...)
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
		if i == 3 {
			if err := c.logsIn(); err != nil {
				return err
			}
		}
	}
	s.start = time.Now()
	s.base, err = take(context.Background(), s.ensemble, s.start)
	return err
}

func (s *soak) server() string { return s.ensemble.Addr(0) }

func (s *soak) close() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.close())
	}
	if s.checker != nil {
		errs = append(errs, s.checker.close())
	}
	return errors.Join(append(errs, s.ensemble.Close())...)
}

// run goes through cycles until the time is over or a check fails.
func (s *soak) run(ctx context.Context, length time.Duration, progress func(string)) error {
	for cycle := 0; time.Since(s.start) < length && ctx.Err() == nil; cycle++ {
		if err := s.load(cycle); err != nil {
			return err
		}
		if err := s.settle(cycle); err != nil {
			return err
		}
		if _, fouls, left := s.referee.Result(); len(fouls) > 0 || left > 0 {
			return fmt.Errorf("exclusion broken: %d holds left, and:\n%s", left, strings.Join(fouls, "\n"))
		}
		last := s.settled[len(s.settled)-1]
		progress(fmt.Sprintf("%v: %d uses, %d faults; settled: %d goroutines, %d files, %.1f MiB, %d watches, %d nodes",
			last.at.Round(time.Second), s.tally.total(s.tally.ops), s.tally.total(s.tally.faults),
			last.Goroutines, last.Files, float64(last.Heap)/(1<<20), last.Watches, last.Nodes))
	}
	_, _, err := judgeHeap(s.settled)
	if errors.Is(err, errTooShort) {
		return nil
	}
	return err
}

// load is the first half of a cycle: all workers take locks, and faults strike. The last client is
// closed in the middle of it.
func (s *soak) load(cycle int) error {
	ctx, cancel := context.WithTimeout(context.Background(), loadPhase)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	rng := func(n int) *rand.Rand { return rand.New(rand.NewPCG(s.seed, uint64(cycle*1000+n))) }
	for i, c := range s.clients {
		for n := range workersEach {
			w := &worker{c: c, cycle: cycle, rng: rng(i*workersEach + n), referee: s.referee, tally: s.tally}
			g.Go(func() error { return w.work(ctx) })
		}
		t := &trouble{c: c, rng: rng(500 + i), referee: s.referee, tally: s.tally}
		g.Go(func() error { return t.make(ctx) })
	}
	g.Go(func() error { return pauseServer(ctx, s.ensemble, rng(600), s.tally) })
	closing := upTo(rng(601), loadPhase)
	g.Go(func() error {
		wait(ctx, closing)
		s.tally.fault("managers closed")
		_ = s.clients[clients-1].m.Close() // see client.close
		return nil
	})
	g.Go(func() error { return s.sampleLoad(ctx) })

	over := make(chan error, 1)
	go func() { over <- g.Wait() }()
	select {
	case err := <-over:
		return err
	case <-time.After(loadPhase + patience):
		return hang(fmt.Errorf("some use of a lock has not ended %v after all were told to give up", patience))
	}
}

func (s *soak) sampleLoad(ctx context.Context) error {
	for wait(ctx, s.every) {
		one, err := take(ctx, s.ensemble, s.start)
		if err != nil || len(s.loaded) == cap(s.loaded) {
			continue // the server is paused
		}
		one.Memory()
		s.loaded = append(s.loaded, one)
	}
	return nil
}

// settle is the second half of a cycle, without workers and faults. A fresh client takes each lock in
// full, which shows that no contender is left. After that this process and the server must have no
// more in use than before the first cycle.
func (s *soak) settle(cycle int) error {
	begin := time.Now()
	if err := s.renew(cycle); err != nil {
		return err
	}
	if err := s.resetLimits(); err != nil {
		return err
	}
	if err := s.takeEverything(cycle); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var one sample
	var err error
	for {
		one, err = take(ctx, s.ensemble, s.start)
		more := one.Above(s.base.Usage)
		if err == nil && more == "" && s.allConnected() {
			break
		}
		if !wait(ctx, 50*time.Millisecond) {
			return hang(errors.Join(fmt.Errorf("cycle %d does not settle in %v: %s", cycle, patience, more), err))
		}
	}
	s.slowestSettle = max(s.slowestSettle, time.Since(begin))
	one.MemoryLeft()
	s.settled = append(s.settled, one)
	return nil
}

func (s *soak) allConnected() bool {
	return !slices.ContainsFunc(s.clients, func(c *client) bool { return !c.connected() })
}

// renew connects a client for the one that was closed, and gives the others a new proxy.
func (s *soak) renew(cycle int) error {
	for _, c := range s.clients[:clients-1] {
		if err := c.renewProxy(s.server()); err != nil {
			return err
		}
	}
	if err := s.clients[clients-1].close(); err != nil {
		return err
	}
	fresh, err := newClient(s.server(), fmt.Sprintf("client %d.%d", clients-1, cycle), nil)
	if err == nil {
		s.clients[clients-1] = fresh
	}
	return err
}

// resetLimits gives the semaphores their first limits again. Otherwise their directories would stay.
func (s *soak) resetLimits() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, sem := range s.checker.locks.sem {
		ended := s.referee.LimitsOf(semPlaces[i]).Change(semPlaces[i].Capacity)
		err := sem.ResetLimit(ctx)
		ended(err)
		if err != nil {
			return fmt.Errorf("after everybody has left: %w", err)
		}
	}
	return nil
}

// takeEverything takes each place in full, which shows that no contender is left there.
func (s *soak) takeEverything(cycle int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, w := range s.checker.locks.everything(cycle) {
		begin := time.Now()
		var releases []func(context.Context) error
		for range w.leases {
			l, err := w.acquire(ctx)
			if err != nil {
				return hang(fmt.Errorf("after everybody has left, %s cannot be had: %w", w.path, err))
			}
			releases = append(releases, l.Release)
		}
		s.slowestEntry = max(s.slowestEntry, time.Since(begin))
		for _, f := range releases {
			if _, ok := classify(release(f)); !ok {
				return fmt.Errorf("release of %s", w.path)
			}
		}
	}
	return nil
}

// hang adds the stacks of all goroutines to an error.
func hang(err error) error {
	var b strings.Builder
	if f := pprof.Lookup("goroutine"); f != nil {
		_ = f.WriteTo(&b, 1)
	}
	fmt.Fprintln(os.Stderr, b.String())
	return err
}
