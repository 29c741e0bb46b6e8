package hold_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/queue"
)

// A lease that nobody has used is given up as unwanted, so that no place is kept for it. One that was used is not.
func TestUnwanted(t *testing.T) {
	for what, c := range map[string]struct {
		end place.End
		f   func(t *testing.T, h *hold.Holds[*lease], l *lease)
	}{
		"the hold in the slot is lost": {place.Unwanted, func(t *testing.T, h *hold.Holds[*lease], l *lease) {
			first := lock(t, h, context.Background(), "first")
			ctx, cancel := context.WithCancel(context.Background())
			h.Get = granted(l, func() { first.lose(); cancel() })
			wantErr(t, "Lock", h.Lock(ctx), context.Canceled)
		}},
		"the context ends before the slot is free": {place.Unwanted, func(t *testing.T, h *hold.Holds[*lease], l *lease) {
			lock(t, h, context.Background(), "first")
			ctx, cancel := context.WithCancel(context.Background())
			h.Get = granted(l, cancel)
			wantErr(t, "Lock", h.Lock(ctx), context.Canceled)
		}},
		"a try finds the slot taken": {place.Unwanted, func(t *testing.T, h *hold.Holds[*lease], l *lease) {
			lock(t, h, context.Background(), "first")
			h.Try = func(context.Context) (*lease, error) { return l, nil }
			if ok, err := h.TryLock(context.Background()); ok || err != nil {
				t.Errorf("TryLock: %v, %v", ok, err)
			}
		}},
		"the function of Do never runs": {place.Unwanted, func(t *testing.T, h *hold.Holds[*lease], l *lease) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			l.when(func() { // called when it becomes a hold, and then by Context
				l.when(func() { panic("a context of the caller's that panics") })
			})
			h.Get = granted(l, func() {})
			_ = h.Do(context.Background(), func(context.Context) error {
				t.Error("called")
				return nil
			})
		}},
		"Unlock": {place.Done, func(t *testing.T, h *hold.Holds[*lease], l *lease) {
			h.Get = granted(l, func() {})
			wantErr(t, "Lock", h.Lock(context.Background()), nil)
			wantErr(t, "Unlock", h.Unlock(), nil)
		}},
		"the function of Do panics": {place.Done, func(_ *testing.T, h *hold.Holds[*lease], l *lease) {
			defer func() { _ = recover() }()
			h.Get = granted(l, func() {})
			_ = h.Do(context.Background(), func(context.Context) error { panic("the function") })
		}},
	} {
		t.Run(what, func(t *testing.T) {
			l := &lease{name: "the"}
			c.f(t, hold.One[*lease]("/lock", nil), l)
			if !errors.Is(l.Err(), queue.ErrReleased) || l.end != c.end {
				t.Errorf("%v, released with %v, want %v", l.Err(), l.end, c.end)
			}
		})
	}
}

// granted returns a Get that calls f and then grants a lease.
func granted(l *lease, f func()) hold.Get[*lease] {
	return hold.InOneStep(func(context.Context) (*lease, error) {
		f()
		return l, nil
	})
}
