package share

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// When the last waiter has left, nobody is in the way of a try: the try waits for the connection, and a call that waits gets an
// acquisition of its own.
func TestCalledBackIsNotInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t)
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithTimeout(time.Minute), session.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := turnsOn(t, m, "/lock", func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 1, 0) })
		server.Refuse(true)
		server.Disconnect()
		synctest.Wait()
		for range 3 {
			for _, try := range []bool{false, true} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				began := time.Now()
				_, err := s.Acquire(ctx, try)
				cancel()
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
					t.Errorf("try %v: after %v: %v", try, took, err)
				}
			}
		}
		server.Refuse(false)
		l, err := s.Acquire(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
