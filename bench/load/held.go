package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// atOnce is how many goroutines take or give back uncontended locks.
const atOnce = 64

// held has one manager hold 2,000 locks at once.
func held(ctx context.Context, e *zktest.Ensemble, of func(int) int) (t table, err error) {
	locks := of(2000)
	t.title = fmt.Sprintf("%d locks held by one manager", locks)
	ms, err := connect(ctx, e, 0, 1)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll(ms)) }()
	m, err := newMeter(ctx, e)
	if err != nil {
		return t, err
	}
	leases, err := takeLocks(ctx, ms[0], "/load/held", locks)
	if err != nil {
		return t, err
	}
	// Each holder watches its own node.
	u, took, sent, err := m.until(ctx, "all to be held and watched", func(u usage.Usage) bool {
		return u.Ephemerals == m.base.Ephemerals+locks && u.Watches == m.base.Watches+locks
	})
	if err != nil {
		return t, err
	}
	t.row(fmt.Sprintf("to take all of them, %d at a time", atOnce), "%v", round(took))
	t.row("requests for each, its parents' and its watch's among them", "%.1f", float64(sent)/float64(locks))
	watches := u.Watches
	if u, err = m.quiet(ctx, 0, locks); err != nil {
		return t, err
	}
	m.goroutines(&t, u, locks)
	t.row("watches on the server", "%d", watches)

	if err := m.phase(ctx); err != nil {
		return t, err
	}
	if err := giveBack(ctx, leases); err != nil {
		return t, err
	}
	_, took, sent, err = m.until(ctx, "all to be given back", func(u usage.Usage) bool { return u.Ephemerals == m.base.Ephemerals })
	if err != nil {
		return t, err
	}
	t.row(fmt.Sprintf("to give all of them back, %d at a time", atOnce), "%v", round(took))
	t.row("requests for each", "%.1f", float64(sent)/float64(locks))
	return t, m.over(ctx)
}

// takeLocks takes n locks, numbered from 0 below dir, and returns the leases.
func takeLocks(ctx context.Context, m *session.Manager, dir string, n int) ([]*queue.Lease, error) {
	leases := make([]*queue.Lease, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range leases {
		g.Go(func() error {
			mx, err := zklock.New(m, fmt.Sprintf("%s/%d", dir, i))
			if err == nil {
				leases[i], err = mx.Acquire(ctx)
			}
			return err
		})
	}
	return leases, g.Wait()
}

// giveBack releases leases, all of which must be held.
func giveBack(ctx context.Context, leases []*queue.Lease) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, l := range leases {
		g.Go(func() error { return l.Release(ctx) })
	}
	return g.Wait()
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
