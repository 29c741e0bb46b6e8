package zktest_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// manager returns a manager with a live session, closed when the test ends.
func manager(t *testing.T, servers string, opts ...session.Option) *session.Manager {
	t.Helper()
	opts = append(opts, session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	m, err := session.Connect(soon(t), servers, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func mutex(t *testing.T, m *session.Manager, path string) *zklock.Mutex {
	t.Helper()
	mx, err := zklock.New(m, path)
	if err != nil {
		t.Fatal(err)
	}
	return mx
}

// The example of the package's documentation.
func TestReplyIsLost(t *testing.T) {
	srv := zktest.Start(t)
	m, err := session.Connect(t.Context(), srv.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/report")
	if err != nil {
		t.Fatal(err)
	}
	cut := srv.CutAfterCommit(zktest.On(zktest.OpCreate, "/locks/report/"))
	if err := lock.Lock(t.Context()); err != nil {
		t.Error(err) // the connection breaks, and Lock succeeds all the same
	}
	<-cut.Hit()
}

// lockTwice passes a lock from one process to another, and checks that nothing is left.
func lockTwice(t *testing.T, srv *zktest.Server, connect func() *session.Manager) {
	t.Helper()
	ctx := soon(t)
	first, second := mutex(t, connect(), "/locks/one"), mutex(t, connect(), "/locks/one")
	if err := first.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	locked := make(chan error, 1)
	go func() { locked <- second.Lock(ctx) }()
	zktest.Eventually(t, 20*time.Second, "both wait", func() bool {
		all, err := first.Contenders(ctx)
		return err == nil && len(all) == 2
	})
	pending(t, locked, "the second holds what the first has")
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, locked, "the second's lock"); err != nil {
		t.Fatal(err)
	}
	if err := second.Unlock(); err != nil {
		t.Fatal(err)
	}
	if n := srv.ReapContainers(); n != 1 {
		t.Errorf("%d containers reaped, want 1", n)
	}
}

func TestLockOverPipe(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	lockTwice(t, srv, func() *session.Manager {
		return manager(t, "anywhere:2181", session.WithDialer(srv.Dialer()))
	})
}

func TestLockOverTCP(t *testing.T) {
	t.Parallel()
	srv := zktest.Start(t)
	lockTwice(t, srv, func() *session.Manager { return manager(t, srv.ConnectString()) })
}

// In a bubble a session lives for an hour, and is lost in a partition, at once.
func TestLockInBubble(t *testing.T) {
	t.Parallel()
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		dial := session.WithDialer(srv.Dialer())
		mine := manager(t, "anywhere:2181", dial)
		other := manager(t, "anywhere:2181", dial)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		held := mutex(t, mine, "/locks/hour")
		if err := held.Lock(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := mine.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		waiter := mutex(t, other, "/locks/hour")
		go func() { waiting <- waiter.Lock(ctx) }()
		<-time.After(time.Hour)
		if !held.Held() || s.Err() != nil {
			t.Errorf("after an hour: held %v, session %v", held.Held(), s.Err())
		}
		if err := srv.Expire(ctx, s.ID()); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if held.Held() {
			t.Error("held after the session has expired")
		}
	})
	if d := time.Since(began); d > 5*time.Minute {
		t.Errorf("an hour in a bubble took %v", d)
	}
}
