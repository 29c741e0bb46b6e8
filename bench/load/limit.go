package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/turnstile-go/turnstile/bench/internal/usage"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// limit fills a session with as many nodes as it may own. A further call is refused before anything is
// sent. Held locks stay held, and each lock that is given back makes room for another.
func limit(ctx context.Context, e *zktest.Ensemble, of func(int) int) (t table, err error) {
	const more = 100
	most := of(2048)
	t.title = fmt.Sprintf("the limit of %d nodes in a session", most)
	ms, err := connect(ctx, e, 0, 1, session.WithNodeLimits(most, 1<<20))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll(ms)) }()
	m, err := newMeter(ctx, e)
	if err != nil {
		return t, err
	}
	leases, err := takeLocks(ctx, ms[0], "/load/limit", most)
	if err != nil {
		return t, err
	}
	full, _, _, err := m.until(ctx, "all to be held and watched", func(u usage.Usage) bool {
		return u.Ephemerals == m.base.Ephemerals+most && u.Watches == m.base.Watches+most
	})
	if err != nil {
		return t, err
	}
	if err := refused(ctx, ms[0], more); err != nil {
		return t, err
	}
	u, err := usage.Take(ctx, e)
	if err != nil {
		return t, err
	}
	if u.Nodes != full.Nodes || u.Ephemerals != full.Ephemerals {
		return t, fmt.Errorf("the refused have made nodes: %+v, before %+v", u, full)
	}
	t.row(fmt.Sprintf("asked for %d more: refused with ErrTooManyNodes", more), "%d", more)
	t.row("nodes made for them", "%d", u.Nodes-full.Nodes)
	held := 0
	for _, l := range leases {
		if l.Err() == nil {
			held++
		}
	}
	if held != most {
		return t, fmt.Errorf("%d of %d are still held", held, most)
	}
	t.row("still held", "%d", held)
	n := min(more, most)
	if leases, err = again(ctx, ms[0], leases, n); err != nil {
		return t, err
	}
	t.row(fmt.Sprintf("given back %d, and taken others", n), "%d", n)
	if err := giveBack(ctx, leases); err != nil {
		return t, err
	}
	return t, m.over(ctx)
}

// refused asks for locks in a full session.
func refused(ctx context.Context, m *session.Manager, n int) error {
	for range n {
		if _, err := takeLocks(ctx, m, "/load/limit/beyond", 1); !errors.Is(err, session.ErrTooManyNodes) {
			return fmt.Errorf("a lock past the limit of nodes: %w", errors.Join(errNotRefused, err))
		}
	}
	return nil
}

var errNotRefused = errors.New("not refused as it should be")

// again gives n leases back, takes n others, and finds the session full again.
func again(ctx context.Context, m *session.Manager, leases []*queue.Lease, n int) ([]*queue.Lease, error) {
	if err := giveBack(ctx, leases[:n]); err != nil {
		return nil, err
	}
	others, err := takeLocks(ctx, m, "/load/limit/again", n)
	if err != nil {
		return nil, err
	}
	return append(others, leases[n:]...), refused(ctx, m, 1)
}
