package hold_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
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
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	defer cancel()
	var inside *lease
	recovers(t, func() {
		_ = h.Do(ctx, hold.InOneStep(func(context.Context) (*lease, error) {
			inside = &lease{name: "of Do"}
			return inside, nil
		}), func(context.Context) error {
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
		_, _ = h.Lock(context.Background(), hold.InOneStep(func(context.Context) (*lease, error) {
			l.when(func() { panic("a hook") })
			return l, nil
		}))
	})
	if err := l.Err(); !errors.Is(err, queue.ErrReleased) {
		t.Errorf("the lease was not given up: %v", err)
	}
}

// Unlock finds the loss first, and a hook panics.
func TestHookPanicsInUnlock(t *testing.T) {
	h := hold.One[*lease]("/lock")
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	defer cancel()
	l := lock(t, h, ctx, "the first")
	l.lose()
	l.when(func() { panic("a hook") })
	recovers(t, func() { _ = h.Unlock() })
	if _, err := h.Lock(ctx, get("the next")); err != nil {
		t.Errorf("the next Lock: %v", err)
	}
}

// panicsSecond returns a get for a lease that is lost between the look at it when it takes the slot and the look that its
// Context begins with. So the hook is called by the latter, and panics.
func panicsSecond(l *lease) hold.Get[*lease] {
	return hold.InOneStep(func(context.Context) (*lease, error) {
		l.when(func() { l.when(func() { l.lose(); panic("a hook") }) })
		return l, nil
	})
}

// The lease is lost just after it has taken the slot, and a hook panics. The slot is free all the same.
func TestHookPanicsAfterEntry(t *testing.T) {
	for _, c := range []struct {
		name string
		h    *hold.Holds[*lease]
		lock func(*hold.Holds[*lease], hold.Get[*lease])
	}{
		{"Do", hold.One[*lease]("/lock"), func(h *hold.Holds[*lease], get hold.Get[*lease]) {
			_ = h.Do(context.Background(), get, func(context.Context) error { return nil })
		}},
		{"Lock of several", hold.Several[*lease]("/lock"), func(h *hold.Holds[*lease], get hold.Get[*lease]) {
			_, _ = h.Lock(context.Background(), get)
		}},
		{"Locker", hold.One[*lease]("/lock"), func(h *hold.Holds[*lease], get hold.Get[*lease]) {
			h.Locker(get, hold.LockerConfig{OnLost: func(error) {}}).Lock()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			recovers(t, func() { c.lock(c.h, panicsSecond(&lease{name: "the"})) })
			ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
			defer cancel()
			if _, err := c.h.Lock(ctx, get("the next")); err != nil {
				t.Errorf("the next Lock: %v", err)
			}
		})
	}
}
