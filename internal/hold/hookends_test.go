package hold_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/queue"
)

// recovers calls f, and fails the test unless f panics.
func recovers(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// The lease of a Do is lost, and the look at its end finds that first. So a hook is called in this goroutine, and panics. The
// slot is free all the same.
func TestHookPanicsAtEndOfDo(t *testing.T) {
	h := hold.One[*lease]("/lock")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var inside *lease
	recovers(t, func() {
		_ = h.Do(ctx, func(context.Context) (*lease, error) {
			inside = &lease{name: "of Do"}
			return inside, nil
		}, func(context.Context) error {
			inside.lose()
			inside.when(func() { panic("a hook") })
			return nil
		})
	})
	if _, err := h.Lock(ctx, get("the next")); err != nil {
		t.Errorf("the next Lock: %v", err)
	}
}

// A hold that consists of several leases has lost one of them when it takes the slot. A hook is called, and panics. The
// others are given up all the same.
func TestHookPanicsAtEntry(t *testing.T) {
	h := hold.Several[*lease]("/lock")
	l := &lease{name: "the"}
	recovers(t, func() {
		_, _ = h.Lock(context.Background(), func(context.Context) (*lease, error) {
			l.when(func() { panic("a hook") })
			return l, nil
		})
	})
	if err := l.Err(); !errors.Is(err, queue.ErrReleased) {
		t.Errorf("the lease was not given up: %v", err)
	}
}

// Unlock finds the loss first, and a hook panics.
func TestHookPanicsInUnlock(t *testing.T) {
	h := hold.One[*lease]("/lock")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l := lock(t, h, ctx, "the first")
	l.lose()
	l.when(func() { panic("a hook") })
	recovers(t, func() { _ = h.Unlock() })
	if _, err := h.Lock(ctx, get("the next")); err != nil {
		t.Errorf("the next Lock: %v", err)
	}
}
