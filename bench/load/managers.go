package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// managers has 50 managers on one server. Each holds locks of its own, and all of them want one more.
func managers(ctx context.Context, e *zktest.Ensemble, of func(int) int) (t table, err error) {
	const own, times = 20, 20
	n := of(50)
	t.title = fmt.Sprintf("%d managers on one server, each holding %d locks", n, own)
	m, err := newMeter(ctx, e)
	if err != nil {
		return t, err
	}
	ms, err := connect(ctx, e, 0, n)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll(ms), m.over(ctx)) }()
	t.row("to connect all of them, one after the other", "%v", round(time.Since(m.begin)))
	// An idle manager. The goroutines of its connecting have ended.
	u, err := m.quiet(ctx, 8, n)
	if err != nil {
		return t, err
	}
	m.goroutines(&t, u, n)
	m.memory(&t, u, n)

	if err := m.phase(ctx); err != nil {
		return t, err
	}
	leases, err := takeEach(ctx, ms, own)
	if err != nil {
		return t, err
	}
	t.row(fmt.Sprintf("to take %d locks", n*own), "%v", round(time.Since(m.begin)))

	if err := m.phase(ctx); err != nil {
		return t, err
	}
	if err := contend(ctx, ms, times); err != nil {
		return t, err
	}
	took := time.Since(m.begin)
	t.row(fmt.Sprintf("one more lock, which each takes %d times: hand-overs per second", times),
		"%.0f", float64(n*times)/took.Seconds())

	if err := m.phase(ctx); err != nil {
		return t, err
	}
	if err := giveBack(ctx, leases); err != nil {
		return t, err
	}
	_, took, _, err = m.until(ctx, "all to be given back", func(u usage.Usage) bool { return u.Ephemerals == m.base.Ephemerals })
	t.row(fmt.Sprintf("to give %d locks back, %d at a time", n*own, atOnce), "%v", round(took))
	return t, err
}

// takeEach has each manager take locks of its own, all of them at the same time.
func takeEach(ctx context.Context, ms []*session.Manager, own int) ([]*queue.Lease, error) {
	leases := make([][]*queue.Lease, len(ms))
	var g errgroup.Group
	for i, m := range ms {
		g.Go(func() (err error) {
			leases[i], err = takeLocks(ctx, m, fmt.Sprintf("/load/managers/%d", i), own)
			return err
		})
	}
	err := g.Wait()
	var all []*queue.Lease
	for _, some := range leases {
		all = append(all, some...)
	}
	return all, err
}

// contend has each manager take one lock several times.
func contend(ctx context.Context, ms []*session.Manager, times int) error {
	var inside, twice atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range ms {
		mx, err := zklock.New(m, "/load/managers/one")
		if err != nil {
			return err
		}
		g.Go(func() error {
			for range times {
				l, err := mx.Acquire(ctx)
				if err != nil {
					return err
				}
				if inside.Add(1) != 1 {
					twice.Add(1)
				}
				inside.Add(-1)
				if err := l.Release(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if n := twice.Load(); n > 0 {
		return fmt.Errorf("%d times a lock was held twice", n)
	}
	return nil
}
