package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// No client loses a lock or its place in the queue if a server is killed and comes back within the session
// timeout.
func TestServerRestart(t *testing.T) {
	longtest.Only(t)
	const waiters = 4
	server := zktest.StartReal(t)
	goroutines := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	const dir = "/restart"
	open := func() *session.Manager {
		// Longer than a Java machine takes to start on a busy host.
		return testserver.Connect(t, server.Addr(0), session.WithTimeout(40*time.Second))
	}
	managers := []*session.Manager{open()}
	locked := newMutex(t, managers[0], dir)
	must(t, locked.Lock(ctx))
	other, err := newMutex(t, managers[0], dir+"-handle").Acquire(ctx)
	must(t, err)

	order := make(chan int, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		m := open()
		managers = append(managers, m)
		mx := newMutex(t, m, dir)
		wg.Go(func() {
			if err := mx.Lock(ctx); err != nil {
				t.Error(err)
			}
			order <- i
			if err := mx.Unlock(); err != nil {
				t.Error(err)
			}
		})
		zktest.Eventually(t, testserver.Patience, "the next waiter to stand in the queue", func() bool {
			all, err := locked.Contenders(ctx)
			return err == nil && len(all) == i+2
		})
	}
	before, err := locked.Contenders(ctx)
	must(t, err)

	must(t, server.Restart(ctx, 0))
	for _, m := range managers { // each of them has reconnected
		zktest.Eventually(t, testserver.Patience, "the connection to come back", func() bool {
			return m.State() == session.Connected
		})
	}
	if !locked.Held() || other.Err() != nil {
		t.Fatalf("lost in a restart: held %v, %v", locked.Held(), other.Err())
	}
	select {
	case <-other.Done():
		t.Fatal("a lease ended in a restart")
	case i := <-order:
		t.Fatalf("waiter %d got in while the lock was held", i)
	default:
	}
	after, err := locked.Contenders(ctx)
	must(t, err)
	if a, b := pathsOf(before), pathsOf(after); a != b {
		t.Errorf("the queue before the restart: %s\nand after: %s", a, b)
	}
	must(t, locked.Unlock())
	for want := range waiters {
		if got := receive(t, "the next waiter", order); got != want {
			t.Errorf("waiter %d entered, it was the turn of %d", got, want)
		}
	}
	wg.Wait()
	must(t, other.Release(ctx))
	zktest.Eventually(t, testserver.Patience, "no watch", func() bool {
		return watchesUnder(t, server, dir) == 0
	})
	for _, m := range managers {
		must(t, m.Close())
	}
	waitGoroutines(t, goroutines, 0)
}

func pathsOf(all []queue.Contender) string {
	out := ""
	for _, c := range all {
		out += fmt.Sprintf("%s %v, ", path.Base(c.Path), c.Holder)
	}
	return out
}

// A server is killed at random moments under load. Whatever the clients were doing, there are never two holders,
// and all clients go on.
func TestServerKilledUnderLoad(t *testing.T) {
	longtest.Only(t)
	const clients, kills = 5, 3
	server := zktest.StartReal(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var r referee
	stop := make(chan struct{})
	var wg sync.WaitGroup
	opts := []session.Option{
		session.WithTimeout(20 * time.Second),
		// Short, since a server that is just starting swallows handshakes.
		session.WithBackoff(50*time.Millisecond, 50*time.Millisecond),
	}
	for range clients {
		mx := newMutex(t, testserver.Connect(t, server.Addr(0), opts...), "/load")
		wg.Go(func() { r.contend(ctx, t, mx.Acquire, stop) })
	}
	for range kills {
		n := r.count()
		zktest.Eventually(t, testserver.Patience, "the lock to go round", func() bool { return r.count() > n+10 })
		// This waits for nothing. It picks a random point of the protocol for the kill.
		<-time.After(rand.N(20 * time.Millisecond))
		must(t, server.Restart(ctx, 0))
	}
	n := r.count()
	zktest.Eventually(t, testserver.Patience, "the lock to go round", func() bool { return r.count() > n+10 })
	close(stop)
	wg.Wait()
	r.check(t)
}

// contend acquires and releases until stop is closed.
func (r *referee) contend(ctx context.Context, t *testing.T,
	acquire func(context.Context) (*queue.Lease, error), stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		l, err := acquire(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		r.enter(l)
		_ = l.Release(ctx) // may be lost or pending, because of the fault
	}
}
