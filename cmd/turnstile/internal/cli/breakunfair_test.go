package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Break asks the holder of an unfair lock, and deletes its node.
func TestBreakUnfair(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		l := w.acquire(t, "asked", zklock.WithUnfair(), zklock.WithRevocable(func(l *queue.Lease) { _ = l.Release(context.Background()) }))
		w.call(t.Context(), "break", w.top+"/asked").want(t, 0)
		if err := lost(t, l); !errors.Is(err, queue.ErrReleased) {
			t.Errorf("the lease ended with %v", err)
		}
		l = w.acquire(t, "forced", zklock.WithUnfair())
		w.call(t.Context(), "break", "--force", "--yes", w.top+"/forced").want(t, 0)
		if err := lost(t, l); !errors.Is(err, session.ErrLost) {
			t.Errorf("the lease ended with %v", err)
		}
	})
}
