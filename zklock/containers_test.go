package zklock_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// On a server without containers, many locks on new paths are taken at once, even if each hang-up of the
// server loses the session.
func TestNewPathsWithoutContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.NoContainers())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var losses int
		m, err := session.Connect(ctx, "any:2181", session.WithDialer(srv.Dialer()), session.WithLossOnSuspend(),
			session.WithLogger(slog.New(slog.DiscardHandler)), session.WithTrace(session.Trace{State: func(c session.Change) {
				if c.To == session.Lost {
					losses++
				}
			}}))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				mu, err := zklock.New(m, fmt.Sprintf("/locks/%d", i))
				if err == nil {
					err = mu.Lock(ctx)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if losses != 1 {
			t.Errorf("%d sessions were lost, want 1", losses)
		}
	})
}
