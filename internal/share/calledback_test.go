package share

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
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
		expect.NoError(t, err)
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
		expect.NoError(t, err)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The goroutine that acquires for all has the context of the first waiter, also for hooks. If a hook blocks with it, the last
// waiter does not wait for that when its own context ends.
func TestCalledBackInAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, goOn := zktest.Start(t), make(chan struct{})
		type blocking struct{}
		m, err := session.Connect(t.Context(), "zookeeper:2181", session.WithDialer(server.Dialer()),
			session.WithLogger(slog.New(slog.DiscardHandler)), session.WithTrace(session.Trace{
				Request: func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
					if i.Op == "create" && ctx.Value(blocking{}) != nil {
						<-goOn
					}
					return ctx, nil
				},
			}))
		expect.NoError(t, err)
		defer m.Close()
		p := &process{Turns: turnsOn(t, m, "/lock", func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 1, 0) })}
		first := p.begin(context.WithValue(t.Context(), blocking{}, true))
		synctest.Wait()
		second := p.begin(t.Context())
		synctest.Wait()
		first.cancel()
		first.fails(t, context.Canceled)
		second.cancel()
		select {
		case g := <-second.done:
			if !errors.Is(g.err, context.Canceled) {
				t.Error(g.err)
			}
		case <-time.After(time.Second):
			t.Error("a call waits for another caller's hook after its context has ended")
		}
		close(goOn)
	})
}
