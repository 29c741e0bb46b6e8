package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

const (
	accounts  = 6
	tablePath = "/intention/accounts"
	work      = 5 * time.Millisecond // on a row
)

// table stands for a table of a store that all processes use. It guards nothing itself: without the locks,
// transfers would overwrite each other's balances, and audits would find a wrong sum.
type table struct {
	balances [accounts]atomic.Int64
	sum      atomic.Int64 // of all balances

	mu       sync.Mutex
	now, top int // how many transfers are at work, and were at most
}

func newTable() *table {
	t := new(table)
	for i := range t.balances {
		t.balances[i].Store(100)
	}
	t.sum.Store(100 * accounts)
	return t
}

// transfer moves 1 from one account to another.
func (t *table) transfer(ctx context.Context, m *session.Manager, from, to int) error {
	return while(ctx, m, func(ctx context.Context) error {
		t.begin()
		defer t.end()
		a, b := t.balances[from].Load(), t.balances[to].Load()
		if err := pause(ctx); err != nil {
			return err
		}
		t.balances[from].Store(a - 1)
		t.balances[to].Store(b + 1)
		return nil
	}, want{tablePath, IX}, want{rowPath(from), X}, want{rowPath(to), X})
}

// audit compares the sum of all accounts with the books.
func (t *table) audit(ctx context.Context, m *session.Manager) error {
	return while(ctx, m, func(ctx context.Context) error {
		var sum int64
		for i := range t.balances {
			sum += t.balances[i].Load()
		}
		if err := pause(ctx); err != nil {
			return err
		}
		if right := t.sum.Load(); sum != right {
			return fmt.Errorf("the balances add up to %d, want %d", sum, right)
		}
		return nil
	}, want{tablePath, S})
}

// closeBooks gives each account 1 of interest.
func (t *table) closeBooks(ctx context.Context, m *session.Manager) error {
	return while(ctx, m, func(ctx context.Context) error {
		for i := range t.balances {
			b := t.balances[i].Load()
			if err := pause(ctx); err != nil {
				return err
			}
			t.balances[i].Store(b + 1)
			t.sum.Add(1)
		}
		return nil
	}, want{tablePath, X})
}

// want is a lock and its mode.
type want struct {
	path string
	mode Mode
}

// rowPath returns the path of a row's lock. It is not below that of the table, where every contender for the
// table would list it.
func rowPath(row int) string { return fmt.Sprintf("/intention/accounts-row/%d", row) }

// while calls f while it holds some locks. It takes them in the order of their paths, one inside the Do of the other.
// All processes have the same order, so two callers never wait for each other in a circle. The context of f ends when
// one of the locks is lost.
func while(ctx context.Context, m *session.Manager, f func(context.Context) error, wants ...want) error {
	slices.SortFunc(wants, func(a, b want) int { return strings.Compare(a.path, b.path) })
	var locks []*Lock
	for _, w := range wants {
		l, err := NewLock(m, w.path, w.mode)
		if err != nil {
			return err
		}
		locks = append(locks, l)
	}
	for _, l := range slices.Backward(locks) {
		inner := f
		f = func(ctx context.Context) error { return l.Do(ctx, inner) }
	}
	return f(ctx)
}

// pause stands for work. It returns early if a lock is lost.
func pause(ctx context.Context) error {
	select {
	case <-time.After(work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *table) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	t.top = max(t.top, t.now)
}

func (t *table) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now--
}

// most returns how many transfers were at work at the same time, at most.
func (t *table) most() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.top
}
