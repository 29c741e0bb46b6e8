package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// lock is what a rival written in Go has; what it lacks is nil.
type lock struct {
	lock, unlock   func(context.Context) error
	rlock, runlock func(context.Context) error
	try            func(context.Context) (bool, error)
	entered        func() time.Time // when the create of the last lock was answered, if lock had to wait then
}

// connection is one client with one session.
type connection interface {
	// Lock makes the lock object of one worker.
	Lock(ctx context.Context, p plan, worker int) (lock, error)
	Close() error
}

// localTeam is a team in this process.
type localTeam struct {
	plan        plan
	connections []connection
	locks       []lock          // by worker; zero until it is needed
	queued      *errgroup.Group // after Queue
	out         *recorder       // of those
}

func openLocal(ctx context.Context, p plan, connect func(ctx context.Context, server string, p plan) (connection, error)) (team, error) {
	t := &localTeam{plan: p, locks: make([]lock, p.workers)}
	for i := range p.sessions {
		c, err := connect(ctx, p.server(i), p)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.connections = append(t.connections, c)
	}
	return t, nil
}

func (t *localTeam) Close() error {
	var g errgroup.Group
	for _, c := range t.connections {
		g.Go(c.Close)
	}
	return g.Wait()
}

// of returns a worker's lock. Each worker is used by one goroutine at a time.
func (t *localTeam) of(ctx context.Context, worker int) (*lock, error) {
	l := &t.locks[worker]
	var err error
	if l.lock == nil {
		*l, err = t.connections[worker%len(t.connections)].Lock(ctx, t.plan, worker)
	}
	return l, err
}

// recorder collects what the workers of one call measure.
type recorder struct {
	mu       sync.Mutex
	released time.Time // when the last holder began to give back
	outcome
}

func (r *recorder) cycle(ctx context.Context, l *lock, write bool, hold time.Duration) error {
	take, give := l.lock, l.unlock
	if l.rlock != nil && !write {
		take, give = l.rlock, l.runlock
	}
	asked := time.Now()
	if err := take(ctx); err != nil {
		return err
	}
	held := time.Now()
	var entered time.Time
	if l.entered != nil {
		entered = l.entered()
	}
	r.mu.Lock()
	switch {
	case asked.Before(r.released):
		r.gaps = append(r.gaps, held.Sub(r.released))
	case entered.After(asked):
		r.gaps = append(r.gaps, held.Sub(entered))
	}
	r.mu.Unlock()
	pause(hold)
	leaving := time.Now()
	r.mu.Lock()
	r.released = leaving
	r.mu.Unlock()
	if err := give(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycles = append(r.cycles, held.Sub(asked)+time.Since(leaving))
	return nil
}

func (t *localTeam) Cycles(ctx context.Context, n int, hold time.Duration) (outcome, error) {
	var r recorder
	var err error
	start := time.Now()
	if t.plan.turns > 0 {
		err = t.inTurns(ctx, n, func(l *lock) error { return r.cycle(ctx, l, true, hold) })
	} else {
		err = t.all(ctx, 0, func(ctx context.Context, worker int, l *lock) error {
			for k := range n {
				if err := r.cycle(ctx, l, t.plan.writes(worker, k), hold); err != nil {
					return err
				}
			}
			return nil
		})
	}
	r.elapsed = time.Since(start)
	return r.outcome, err
}

// inTurns calls f n times for each worker, in turns: one call ends before the next one begins.
func (t *localTeam) inTurns(ctx context.Context, n int, f func(*lock) error) error {
	turns := t.plan.turns
	for k := 0; k < n; k += turns {
		for i := range t.plan.workers * turns {
			l, err := t.of(ctx, i/turns)
			if err == nil {
				err = f(l)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// all calls f for each worker from first on, all at once.
func (t *localTeam) all(ctx context.Context, first int, f func(context.Context, int, *lock) error) error {
	return t.start(ctx, first, f).Wait()
}

func (t *localTeam) start(ctx context.Context, first int, f func(context.Context, int, *lock) error) *errgroup.Group {
	g, ctx := errgroup.WithContext(ctx)
	for worker := first; worker < t.plan.workers; worker++ {
		g.Go(func() error {
			l, err := t.of(ctx, worker)
			if err != nil {
				return err
			}
			return f(ctx, worker, l)
		})
	}
	return g
}

func (t *localTeam) Hold(ctx context.Context) error {
	l, err := t.of(ctx, 0)
	if err != nil {
		return err
	}
	return l.lock(ctx)
}

func (t *localTeam) Drop(ctx context.Context) error { return t.locks[0].unlock(ctx) }

func (t *localTeam) Try(ctx context.Context, n int) (outcome, error) {
	var o outcome
	l, err := t.of(ctx, 1)
	if err != nil {
		return o, err
	}
	start := time.Now()
	for range n {
		began := time.Now()
		got, err := l.try(ctx)
		if err != nil {
			return o, err
		}
		if got {
			return o, fmt.Errorf("got what another holds at %s", t.plan.path)
		}
		o.cycles = append(o.cycles, time.Since(began))
	}
	o.elapsed = time.Since(start)
	return o, nil
}

func (t *localTeam) Queue(ctx context.Context) error {
	t.out = &recorder{}
	t.queued = t.start(ctx, 1, func(ctx context.Context, _ int, l *lock) error {
		return t.out.cycle(ctx, l, true, 0)
	})
	return nil
}

func (t *localTeam) Drain(ctx context.Context) (outcome, error) {
	start := time.Now()
	if err := t.Drop(ctx); err != nil {
		return outcome{}, err
	}
	err := t.queued.Wait()
	t.out.elapsed = time.Since(start)
	return t.out.outcome, err
}

func (t *localTeam) HoldAll(ctx context.Context) error {
	for worker := range t.plan.workers {
		l, err := t.of(ctx, worker)
		if err == nil {
			err = l.lock(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *localTeam) DropAll(ctx context.Context) error {
	return t.all(ctx, 0, func(ctx context.Context, _ int, l *lock) error { return l.unlock(ctx) })
}

// settling is how long Memory waits before it looks. A lock that is held sets a watch on its node after a few
// milliseconds, and the requests of a thousand of them take a part of this time.
const settling = time.Second

// Memory is the heap and the stacks, because a waiter is mostly a goroutine. Several collections are
// needed to free the memory of finalizers and the stacks of goroutines that have ended.
func (t *localTeam) Memory(ctx context.Context) (uint64, error) {
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	var m runtime.MemStats
	least := uint64(math.MaxUint64)
	for range 10 {
		runtime.GC()
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc+m.StackInuse)
	}
	return least, nil
}

func (t *localTeam) Processor(context.Context) (time.Duration, error) { return processorOfProcess() }
