package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// waitersManagers is as many as are needed, because a session may own 8,192 nodes.
const waitersManagers = 4

// waiters has 10,000 goroutines of one process wait for 100 locks.
func waiters(ctx context.Context, e *zktest.Ensemble, of func(int) int) (t table, err error) {
	const each = 100
	locks := of(100)
	n := locks * each
	t.title = fmt.Sprintf("%d goroutines that wait for %d locks, through %d managers", n, locks, waitersManagers)
	var l line
	ms, err := connect(ctx, e, 0, waitersManagers, session.WithTrace(l.hooks()))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll(ms)) }()
	holder, err := connect(ctx, e, 0, 1)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll(holder)) }()
	const dir = "/load/waiters"
	leases, err := takeLocks(ctx, holder[0], dir, locks)
	if err != nil {
		return t, err
	}
	for _, l := range leases {
		if _, err := l.Token(ctx); err != nil { // its watch is there by then
			return t, err
		}
	}
	m, err := newMeter(ctx, e)
	if err != nil {
		return t, err
	}
	if err := l.enqueue(ctx, ms, dir, locks, each); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	u, took, sent, err := m.until(ctx, "all to wait", func(u usage.Usage) bool {
		return u.Ephemerals == m.base.Ephemerals+n && int(l.watching.Load()) == n
	})
	if err != nil {
		return t, err
	}
	t.row("until all stand in the queue and have their watches", "%v", round(took))
	t.row("requests for each", "%.1f", float64(sent)/float64(n))
	if u, err = m.quiet(ctx, 1, n); err != nil {
		return t, err
	}
	m.goroutines(&t, u, n)
	t.row("watches on the server, for each", "%.2f", float64(u.Watches-m.base.Watches)/float64(n))

	if err := m.phase(ctx); err != nil {
		return t, err
	}
	if err := errors.Join(giveBack(ctx, leases), l.g.Wait()); err != nil {
		return t, err
	}
	drained := time.Since(m.begin)
	_, _, sent, err = m.until(ctx, "all to have left", func(u usage.Usage) bool { return u.Ephemerals == m.base.Ephemerals-locks })
	if err != nil {
		return t, err
	}
	if twice := l.twice.Load(); twice > 0 {
		return t, fmt.Errorf("%d times a lock was held twice", twice)
	}
	t.row("from the first release until each has had its lock, for no time", "%v", round(drained))
	t.row("hand-overs per second", "%.0f", float64(n)/drained.Seconds())
	t.row("requests for each", "%.1f", float64(sent)/float64(n))
	return t, m.over(ctx)
}

// line is all waiters.
type line struct {
	g        errgroup.Group
	cancel   context.CancelFunc
	watching atomic.Int64 // how many have set their watches and wait
	twice    atomic.Int64 // how often one has found another inside
}

func (l *line) hooks() session.Trace {
	ended := func(error) { l.watching.Add(-1) }
	return session.Trace{Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
		l.watching.Add(1)
		return ctx, ended
	}}
}

// enqueue starts goroutines for each lock, which wait for it and give it back.
func (l *line) enqueue(ctx context.Context, ms []*session.Manager, dir string, locks, each int) error {
	ctx, l.cancel = context.WithCancel(ctx)
	for i := range locks {
		var inside atomic.Int64
		var mutexes []*zklock.Mutex
		for _, m := range ms {
			mx, err := zklock.New(m, fmt.Sprintf("%s/%d", dir, i))
			if err != nil {
				return errors.Join(err, l.stop())
			}
			mutexes = append(mutexes, mx)
		}
		for n := range each {
			l.g.Go(func() error { return l.one(ctx, mutexes[n%len(mutexes)], &inside) })
		}
	}
	return nil
}

func (l *line) one(ctx context.Context, mx *zklock.Mutex, inside *atomic.Int64) error {
	lease, err := mx.Acquire(ctx)
	if err != nil {
		return err
	}
	if inside.Add(1) != 1 {
		l.twice.Add(1)
	}
	inside.Add(-1)
	return lease.Release(ctx)
}

// stop has the waiters that are still there give up.
func (l *line) stop() error {
	l.cancel()
	return l.g.Wait()
}
