package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A test that runs in process and on a real server: a lock goes from one session to another.
func ExampleRun() {
	_ = func(t *testing.T) { // TestNextGetsIt
		zktest.Run(t, func(t *testing.T, zk *zktest.Proxy) {
			var locks []*zklock.Mutex
			for range 2 {
				m, err := session.Connect(t.Context(), zk.Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				lock, err := zklock.New(m, "/locks/parcel-7", zklock.WithAsyncRelease())
				if err != nil {
					t.Fatal(err)
				}
				locks = append(locks, lock)
			}
			if err := errors.Join(locks[0].Lock(t.Context()), locks[0].Unlock()); err != nil {
				t.Fatal(err)
			}
			if err := zk.WaitFree(t.Context(), "/locks/parcel-7"); err != nil {
				t.Fatal(err)
			}
			if got, err := locks[1].TryLock(t.Context()); !got || err != nil {
				t.Error(got, err)
			}
		})
	}
}

// A program that comes with a ZooKeeper of its own.
func ExampleNew() {
	srv, err := zktest.New(zktest.TickTime(500 * time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	m, err := session.Connect(context.Background(), srv.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.State())
	// Output: connected
}

// ship is code of yours, to be tested: it must stop when it loses its lock.
func ship(ctx context.Context, lock *zklock.Mutex, pack func(context.Context)) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		pack(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx) // not shipped
		}
		return nil
	})
}

// What does my code do when its lock is lost in the middle? No Java, no network, no
// waiting: the session is expired at the very moment.
func ExampleServer_ExpireHolder() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, "any:2181",
		session.WithDialer(srv.Dialer()), session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/parcel-7")
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println("undisturbed:", ship(ctx, lock, func(context.Context) {}))

	err = ship(ctx, lock, func(ctx context.Context) {
		if err := srv.ExpireHolder(ctx, "/locks/parcel-7"); err != nil {
			log.Fatal(err)
		}
		<-ctx.Done() // the work is told
	})
	fmt.Println("lost:", errors.Is(err, session.ErrLost))
	// Output:
	// undisturbed: <nil>
	// lost: true
}

// Does my code survive the loss of a server? Here a lock outlives the leader of an
// ensemble: a majority of the servers is left, and elects another.
func ExampleServers() {
	srv, err := zktest.New(zktest.Servers(3))
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, srv.Hosts(),
		session.WithDialer(srv.Dialer()), session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/parcel-7")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context) error {
		leader, _ := srv.Leader()
		srv.StopServer(leader)
		fmt.Println("stopped server", leader)

		s, err := m.Session(ctx)
		if err != nil {
			return err
		}
		_, err = s.Exists(ctx, "/locks/parcel-7") // returns once the session is connected again
		return errors.Join(err, ctx.Err())
	})
	leader, ok := srv.Leader()
	fmt.Println("server", leader, "leads:", ok)
	fmt.Println("the lock was kept:", err == nil)
	// Output:
	// stopped server 2
	// server 1 leads: true
	// the lock was kept: true
}
