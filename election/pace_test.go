package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Leader looks again after a second at most, when the candidates that it finds are gone before it reads of them.
func TestLeaderPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		var left atomic.Int32
		left.Store(4)
		var on atomic.Bool
		m, err := session.Connect(t.Context(), "h:1", session.WithDialer(server.Dialer()),
			session.WithBackoff(time.Minute, time.Minute),
			session.WithTrace(session.Trace{Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
				if on.Load() && i.Op == "getData" && left.Add(-1) >= 0 {
					if err := server.DeleteNode(i.Path); err != nil {
						t.Error(err)
					}
				}
				return ctx, nil
			}}))
		must(t, err)
		defer m.Close()
		s, err := m.Session(t.Context())
		must(t, err)
		for range 6 {
			enter(t, s, "/e", "elect-lock-", "a")
		}
		on.Store(true)
		e, err := election.New(m, "/e")
		must(t, err)
		start := time.Now()
		_, err = e.Leader(t.Context())
		must(t, err)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
