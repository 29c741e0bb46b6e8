package zktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The holder of a lock loses its session, and the waiter behind it gets the lock, in process and on a real server.
func TestExpireHolder(t *testing.T) {
	zktest.Run(t, func(t *testing.T, zk *zktest.Proxy) {
		const dir = "/locks/report"
		if err := zk.ExpireHolder(soon(t), dir); err == nil {
			t.Error("nobody holds the lock: no error")
		}
		holder, waiter := mutexAt(t, zk, dir), mutexAt(t, zk, dir)
		lease, err := holder.Acquire(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { got <- waiter.Lock(t.Context()) }()
		zktest.Eventually(t, testserver.Patience, "a waiter", func() bool {
			all, err := holder.Contenders(soon(t))
			return err == nil && len(all) == 2
		})
		if err := zk.ExpireHolder(soon(t), dir); err != nil {
			t.Fatal(err)
		}
		receive(t, lease.Done(), "the end of the lease")
		if err := lease.Err(); !errors.Is(err, session.ErrLost) {
			t.Errorf("the lease: %v", err)
		}
		if err := receive(t, got, "the lock"); err != nil {
			t.Fatal(err)
		}
		// A lease's own path will do, too.
		first, err := mutexAt(t, zk, "/locks/other").Acquire(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := zk.ExpireHolder(soon(t), first.Path()); err != nil {
			t.Fatal(err)
		}
		receive(t, first.Done(), "the end of the other lease")
		if !waiter.Held() {
			t.Error("the holder of another lock has lost it")
		}
	}, zktest.TickTime(200*time.Millisecond))
}

// After WaitFree, another session gets what was released without waiting for the servers.
func TestWaitFree(t *testing.T) {
	zktest.Run(t, func(t *testing.T, zk *zktest.Proxy) {
		const dir = "/locks/report"
		ours, theirs := mutexAt(t, zk, dir, zklock.WithAsyncRelease()), mutexAt(t, zk, dir)
		if err := ours.Lock(soon(t)); err != nil {
			t.Fatal(err)
		}
		held := zk.HoldRequest(zktest.On(zktest.OpDelete, dir))
		if err := ours.Unlock(); err != nil {
			t.Fatal(err)
		}
		receive(t, held.Hit(), "the delete")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := zk.WaitFree(ended, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("with the delete on its way: %v", err)
		}
		held.Release()
		if err := zk.WaitFree(soon(t), "/locks"); err != nil {
			t.Fatal(err)
		}
		if got, err := theirs.TryLock(soon(t)); !got || err != nil {
			t.Errorf("TryLock: %v, %v", got, err)
		}
	}, zktest.TickTime(200*time.Millisecond))
}

// A Server has the same, for all paths and whatever their ACLs.
func TestServerHolder(t *testing.T) {
	srv := zktest.Start(t)
	m, err := session.Connect(t.Context(), srv.Hosts(), session.WithDialer(srv.Dialer()))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := lock.Done()
	for _, path := range []string{"/a/bc", "/a/b/c", "/b"} {
		if err := srv.ExpireHolder(t.Context(), path); err == nil {
			t.Errorf("%s has a holder", path)
		}
	}
	if err := srv.ExpireHolder(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	receive(t, done, "the end of the hold")
	if err := srv.WaitFree(t.Context(), "/"); err != nil {
		t.Error(err)
	}
}

// mutexAt returns a lock of a client with a session of its own.
func mutexAt(t *testing.T, zk *zktest.Proxy, path string, opts ...zklock.Option) *zklock.Mutex {
	t.Helper()
	m, err := zklock.New(testserver.Connect(t, zk.Addr()), path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
