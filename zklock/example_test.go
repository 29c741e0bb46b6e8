package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Connect once, make a Mutex for each thing to lock, and bound the wait with a context.
func Example() {
	ctx := context.Background()
	m, err := session.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := lock.Lock(wait); err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := lock.Unlock(); errors.Is(err, session.ErrLost) {
			log.Print("others may have been in before the work was done: ", err)
		}
	}()
	fmt.Println("alone with invoice 42")
}

// Do ties the work to the lock: its context ends when the lock is lost.
func ExampleMutex_Do() {
	var lock *zklock.Mutex // as in the package's example
	err := lock.Do(context.Background(), func(ctx context.Context) error {
		for range 100 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // lost, or the caller has given up
			}
			// … one step of the work …
		}
		return nil
	})
	if errors.Is(err, session.ErrLost) {
		log.Print("the work was cut short: ", err)
	}
}

// TryLock is for work that is not needed when somebody else is at it.
func ExampleMutex_TryLock() {
	var lock *zklock.Mutex // as in the package's example
	got, err := lock.TryLock(context.Background())
	switch {
	case err != nil:
		log.Print("could not find out: ", err)
	case !got:
		fmt.Println("somebody else is at it")
	default:
		defer lock.Unlock()
		fmt.Println("at it")
	}
}

// Locker is for code that takes a sync.Locker. It cannot say that the lock was lost
// through that, so a program that must not go on then says how to end.
func ExampleMutex_Locker() {
	var lock *zklock.Mutex // as in the package's example
	l := lock.Locker(zklock.OnLost(func(err error) {
		log.Fatal("the lock is gone: ", err)
	}))
	changed := sync.NewCond(l)
	changed.L.Lock()
	defer changed.L.Unlock()
	fmt.Println("alone, in all processes")
}

// WithOwner lets functions that lock call each other.
func ExampleWithOwner() {
	var lock *zklock.Mutex // as in the package's example
	transfer := func(ctx context.Context) error {
		return lock.Do(ctx, func(context.Context) error { return nil })
	}
	settle := func(ctx context.Context) error {
		return lock.Do(ctx, func(ctx context.Context) error {
			return transfer(ctx) // enters at once, as the same owner
		})
	}
	ctx := zklock.WithOwner(context.Background())
	if err := settle(ctx); err != nil {
		log.Print(err)
	}
}

// Acquire returns the hold as a handle. Its token tells a store that compares which of two
// writers is the later one; its guard does the same for writes to ZooKeeper.
func ExampleMutex_Acquire() {
	ctx := context.Background()
	var m *session.Manager // as in the package's example
	var lock *zklock.Mutex
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	token, err := lease.Token(ctx)
	if err != nil {
		log.Fatal(err) // lost already
	}
	fmt.Printf("UPDATE invoices SET …, token = %d WHERE id = 42 AND token < %[1]d\n", token)

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = s.Multi(ctx, lease.Guard(), &zk.SetDataRequest{
		Path: "/invoices/42", Data: []byte("paid"), Version: -1,
	})
	if errors.Is(err, zk.ErrNoNode) {
		log.Print("not written: the lock was lost, or there is no such invoice")
	}
}

// Multi takes several locks, all or none, in the same order as everybody else who does.
func ExampleMulti() {
	var from, to *zklock.Mutex // as in the package's example, of two accounts
	both, err := zklock.Multi(from, to)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // for both
	defer cancel()
	err = both.Do(ctx, func(ctx context.Context) error {
		return ctx.Err() // … move the money; ctx ends when either lock is lost …
	})
	if err != nil {
		log.Print("not moved, or not known to be safe: ", err)
	}
}

// A server whose many goroutines want the same lock stands in the queue once for all of
// them, and lets up to 51 of them in before it is another server's turn.
func ExampleWithLocalHandover() {
	var m *session.Manager // as in the package's example
	lock, err := zklock.New(m, "/locks/stock", zklock.WithLocalHandover(50))
	if err != nil {
		log.Fatal(err)
	}
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			err := lock.Do(context.Background(), func(ctx context.Context) error {
				return ctx.Err() // … count one item; ctx ends when the lock is lost …
			})
			if err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
}

// A holder that can be asked to make room tells its work to end.
func ExampleWithRevocable() {
	var m *session.Manager // as in the package's example
	ctx, asked := context.WithCancelCause(context.Background())
	lock, err := zklock.New(m, "/locks/compaction", zklock.WithRevocable(func(*queue.Lease) {
		asked(errors.New("somebody else wants the lock"))
	}))
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context) error {
		for range 100 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // asked for, or lost
			}
			// … one step of the work …
		}
		return nil
	})
	log.Print("over: ", err)
}

// Revoke asks who holds a lock to make room.
func ExampleRevoke() {
	ctx := context.Background()
	var m *session.Manager // as in the package's example
	var lock *zklock.Mutex
	all, err := lock.Contenders(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range all {
		if !c.Holder {
			continue
		}
		if err := zklock.Revoke(ctx, m, c.Path); err != nil && !errors.Is(err, zk.ErrNoNode) {
			log.Print("not asked: ", err)
		}
	}
}

// Names that come from elsewhere are made safe first: each is one lock, below /locks.
func ExampleEscapePath() {
	for _, name := range []string{"orders-42", "../admin", "100%", ""} {
		fmt.Println("/locks/" + zklock.EscapePath(name))
	}
	// Output:
	// /locks/orders-42
	// /locks/..%2Fadmin
	// /locks/100%25
	// /locks/%
}
