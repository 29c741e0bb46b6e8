package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// connectExample connects to a server in this process. A program connects to its servers instead:
//
//	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181")
func connectExample() (m *session.Manager, closeAll func()) {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	quiet := session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	if m, err = session.Connect(context.Background(), server.ConnectString(), quiet); err != nil {
		log.Fatal(err)
	}
	return m, func() {
		_ = m.Close()
		_ = server.Close()
	}
}

// Readers hold the lock together, and a writer holds it alone. The context of the work ends when the
// lock is lost.
func ExampleReader_Do() {
	ctx := context.Background()
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := rwlock.New(m, "/locks/prices")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Reader().Do(ctx, func(ctx context.Context) error {
		return lock.Reader().Do(ctx, func(context.Context) error { // as another process might
			fmt.Println("two are reading")
			return nil
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context) error {
		got, err := lock.TryRLock(ctx)
		fmt.Println("one is writing; can another read?", got)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// two are reading
	// one is writing; can another read? false
}

// RLock and RUnlock are for work that is not one function. RUnlock says whether the lock was lost in
// the meantime.
func ExampleRWMutex_RLock() {
	ctx := context.Background()
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := rwlock.New(m, "/locks/prices")
	if err != nil {
		log.Fatal(err)
	}
	if err := lock.RLock(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("reading")
	if err := lock.RUnlock(); errors.Is(err, session.ErrLost) {
		log.Print("a writer may have been in between: ", err)
	}
	// Output: reading
}

// A writer goes on as a reader, with no writer in between.
func ExampleRWMutex_RLock_downgrade() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := rwlock.New(m, "/locks/prices")
	if err != nil {
		log.Fatal(err)
	}
	ctx := queue.WithOwner(context.Background())
	err = lock.Do(ctx, func(ctx context.Context) error {
		fmt.Println("writing")
		return lock.RLock(ctx) // stays when Do unlocks
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("reading:", lock.Reader().Held(), "writing:", lock.Held())
	if err := lock.Lock(ctx); errors.Is(err, rwlock.ErrUpgrade) {
		fmt.Println("cannot write again:", err)
	}
	if err := lock.RUnlock(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// writing
	// reading: true writing: false
	// cannot write again: acquire /locks/prices: a read lock cannot become a write lock
}

// Acquire returns a lease, which has its own Release.
func ExampleReader_Acquire() {
	ctx := context.Background()
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := rwlock.New(m, "/locks/prices")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := lock.Reader().Acquire(queue.WithLabel(ctx, "price list"))
	if err != nil {
		log.Fatal(err)
	}
	all, err := lock.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range all {
		fmt.Printf("%s, holder: %v\n", c.Label, c.Holder)
	}
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: price list, holder: true
}

// A Reader is the read lock as a lock of its own, for code that takes any kind of lock. Here one user's account is
// written and the prices are only read, so other users can do the same with their accounts.
func ExampleReader() {
	m, closeAll := connectExample()
	defer closeAll()
	prices, err := rwlock.New(m, "/locks/prices")
	if err != nil {
		log.Fatal(err)
	}
	buy := func(account string) error {
		lock, err := zklock.New(m, "/locks/accounts/"+zklock.EscapePath(account))
		if err != nil {
			return err
		}
		both, err := zklock.Multi(lock, prices.Reader())
		if err != nil {
			return err
		}
		return both.Do(context.Background(), func(ctx context.Context) error {
			fmt.Println(account, "pays; the prices are held for reading:", prices.Reader().Held())
			return ctx.Err() // ctx ends when either lock is lost
		})
	}
	err = prices.Reader().Do(context.Background(), func(context.Context) error { // as another process might
		return buy("ann")
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: ann pays; the prices are held for reading: true
}
