package zklock_test

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

const pricesPath = "/locks/prices"

// inEnsembles runs a test in virtual time with two ensembles. connect makes the managers of another process.
func inEnsembles(t *testing.T, f func(t *testing.T, east, west *zktest.Server, connect func() (e, w *session.Manager))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		east, west := zktest.Start(t), zktest.Start(t)
		open := func(server *zktest.Server, name string) *session.Manager {
			m, err := session.Open("zookeeper:2181", session.WithName(name), session.WithDialer(server.Dialer()),
				session.WithLogger(slog.New(slog.DiscardHandler)))
			must(t, err)
			t.Cleanup(func() { _ = m.Close() })
			return m
		}
		f(t, east, west, func() (*session.Manager, *session.Manager) { return open(east, "east"), open(west, "west") })
	})
}

// The loss of one ensemble ends the hold in time, and nobody gets the lock until that ensemble is back. A process that
// waits for it holds the locks before it meanwhile.
func TestEnsembleLost(t *testing.T) {
	inEnsembles(t, func(t *testing.T, _, west *zktest.Server, connect func() (e, w *session.Manager)) {
		ctx := t.Context()
		e, w := connect()
		holding := make(chan struct{})
		ended := background(func() error {
			return inBoth(ctx, e, w, pricesPath, func(ctx context.Context) error {
				close(holding)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		<-holding
		since := time.Now()
		west.Refuse(true)
		west.Disconnect()
		wantErr(t, "the hold", <-ended, session.ErrLost)
		if d := time.Since(since); d > 10*time.Second {
			t.Errorf("the hold ended %v after the ensemble was lost, which is longer than the session timeout", d)
		}

		e, w = connect()
		waiting := background(func() error {
			return inBoth(ctx, e, w, pricesPath, func(context.Context) error { return errors.New("held without an ensemble") })
		})
		synctest.Wait()
		only := newMutex(t, e, pricesPath)
		if ok, err := only.TryLock(ctx); ok || err != nil {
			t.Errorf("the lock of the other ensemble is free during the wait: %v, %v", ok, err)
		}
		wantErr(t, "the wait", <-waiting, queue.ErrMaxWait)
		must(t, only.Do(ctx, func(context.Context) error { return nil })) // nothing stays

		west.Refuse(false)
		must(t, inBoth(ctx, e, w, pricesPath, func(context.Context) error { return nil }))
	})
}

// A process that dies is followed by the next when both ensembles have expired its sessions.
func TestEnsemblesHolderDies(t *testing.T) {
	inEnsembles(t, func(t *testing.T, east, west *zktest.Server, connect func() (e, w *session.Manager)) {
		e, w := connect()
		first := newMulti(t, newMutex(t, e, pricesPath), newMutex(t, w, pricesPath))
		_, err := first.Acquire(t.Context()) // and never releases it
		must(t, err)
		sessions := make(map[*zktest.Server]int64)
		for server, m := range map[*zktest.Server]*session.Manager{east: e, west: w} {
			s, err := m.Session(t.Context())
			must(t, err)
			sessions[server] = s.ID()
		}
		e, w = connect()
		next := background(func() error {
			return inBoth(t.Context(), e, w, pricesPath, func(context.Context) error { return nil })
		})
		synctest.Wait()
		for _, server := range []*zktest.Server{east, west} {
			pending(t, "the next holder", next)
			must(t, server.Expire(t.Context(), sessions[server]))
			synctest.Wait()
		}
		must(t, <-next)
	})
}
