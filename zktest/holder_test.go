package zktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The holder of a lock loses its session, and the waiter behind it gets the lock, in process and on a real server.
func TestExpireHolder(t *testing.T) {
	longtest.InCI(t)
	zktest.Run(t, func(t *testing.T, zk *zktest.Proxy) {
		const dir = "/locks/report"
		if err := zk.ExpireHolder(soon(t), dir); err == nil {
			t.Error("nobody holds the lock: no error")
		}
		holder, waiter := mutexAt(t, zk, dir), mutexAt(t, zk, dir)
		lease, err := holder.Acquire(soon(t))
		must(t, err)
		got := make(chan error, 1)
		go func() { got <- waiter.Lock(t.Context()) }()
		zktest.Eventually(t, testserver.Patience, "a waiter", func() bool {
			all, err := holder.Contenders(soon(t))
			return err == nil && len(all) == 2
		})
		must(t, zk.ExpireHolder(soon(t), dir))
		receive(t, lease.Done(), "the end of the lease")
		if err := lease.Err(); !errors.Is(err, session.ErrLost) {
			t.Errorf("the lease: %v", err)
		}
		must(t, receive(t, got, "the lock"))
		// A lease's own path will do, too.
		first, err := mutexAt(t, zk, "/locks/other").Acquire(soon(t))
		must(t, err)
		must(t, zk.ExpireHolder(soon(t), first.Path()))
		receive(t, first.Done(), "the end of the other lease")
		if !waiter.Held() {
			t.Error("the holder of another lock has lost it")
		}
	}, zktest.TickTime(200*time.Millisecond))
}

// After WaitFree, another session gets what was released without waiting for the servers.
func TestWaitFree(t *testing.T) {
	longtest.InCI(t)
	zktest.Run(t, func(t *testing.T, zk *zktest.Proxy) {
		const dir = "/locks/report"
		ours, theirs := mutexAt(t, zk, dir, zklock.WithAsyncRelease()), mutexAt(t, zk, dir)
		must(t, ours.Lock(soon(t)))
		held := zk.HoldRequest(zktest.On(zktest.OpDelete, dir))
		must(t, ours.Unlock())
		receive(t, held.Hit(), "the delete")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := zk.WaitFree(ended, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("with the delete on its way: %v", err)
		}
		held.Release()
		must(t, zk.WaitFree(soon(t), "/locks"))
		if got, err := theirs.TryLock(soon(t)); !got || err != nil {
			t.Errorf("TryLock: %v, %v", got, err)
		}
	}, zktest.TickTime(200*time.Millisecond))
}

// A Server has the same, for all paths and whatever their ACLs.
func TestServerHolder(t *testing.T) {
	srv := zktest.Start(t)
	m, err := session.Connect(t.Context(), srv.Hosts(), session.WithDialer(srv.Dialer()))
	must(t, err)
	defer m.Close()
	lock, err := zklock.New(m, "/a/b")
	must(t, err)
	must(t, lock.Lock(t.Context()))
	done := lock.Done()
	for _, path := range []string{"/a/bc", "/a/b/c", "/b"} {
		if err := srv.ExpireHolder(t.Context(), path); err == nil {
			t.Errorf("%s has a holder", path)
		}
	}
	must(t, srv.ExpireHolder(t.Context(), "/"))
	receive(t, done, "the end of the hold")
	must(t, srv.WaitFree(t.Context(), "/"))
}

// mutexAt returns a lock of a client with a session of its own.
func mutexAt(t *testing.T, zk *zktest.Proxy, path string, opts ...zklock.Option) *zklock.Mutex {
	t.Helper()
	m, err := zklock.New(testserver.Connect(t, zk.Addr()), path, opts...)
	must(t, err)
	return m
}
