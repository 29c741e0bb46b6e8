package zklock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Lock and Unlock are for work that is not one function. A context bounds the wait, and Unlock says
// whether the lock was lost in the meantime.
func ExampleMutex_Lock() {
	var lock *zklock.Mutex // as in the package's example
	wait, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := lock.Lock(wait); err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := lock.Unlock(); errors.Is(err, session.ErrLost) {
			log.Print("others may have held the lock before the work was done: ", err)
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
				return context.Cause(ctx) // the lock is lost, or ctx of the caller has ended
			}
			// … one step of the work …
		}
		return nil
	})
	if errors.Is(err, session.ErrLost) {
		log.Print("the work was cut short: ", err)
	}
}

// TryLock is for work that is not needed while another process does it.
func ExampleMutex_TryLock() {
	var lock *zklock.Mutex // as in the package's example
	got, err := lock.TryLock(context.Background())
	switch {
	case err != nil:
		log.Print("could not tell: ", err)
	case !got:
		fmt.Println("another process is at work")
	default:
		defer lock.Unlock()
		fmt.Println("at work")
	}
}

// Locker is for code that takes a sync.Locker, which cannot return the loss of the lock. A program
// that must not go on after a loss ends in OnLost.
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

// WithOwner lets a function that holds the lock call one that locks it.
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

// Acquire returns a lease. A database that compares its token refuses a writer that has lost the
// lock. Its guard does the same for writes to ZooKeeper.
func ExampleMutex_Acquire() {
	ctx := context.Background()
	var m *session.Manager // as in the package's example
	var lock *zklock.Mutex
	var db *sql.DB
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	token, err := lease.Token(ctx)
	if err != nil {
		log.Fatal(err) // lost already
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if err := fence.PostgreSQL.Claim(ctx, tx, token, "invoice-42"); err != nil { // the first statement
		log.Fatal(err) // matches fence.ErrStale if a later holder has been here
	}
	// … read behind the claim, write …
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}

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

// Multi takes several locks, all or none, in the same order in every process.
func ExampleMulti() {
	var from, to *zklock.Mutex // as in the package's example, for two accounts
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

// A process in which many goroutines want the same lock has one place in the queue for all of them.
// Up to 51 of them hold the lock in turn before another process can.
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

// A holder that is asked to give the lock up tells its work to end.
func ExampleWithRevocable() {
	var m *session.Manager // as in the package's example
	ctx, asked := context.WithCancelCause(context.Background())
	lock, err := zklock.New(m, "/locks/compaction", zklock.WithRevocable(func(*queue.Lease) {
		asked(errors.New("another process wants the lock"))
	}))
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(ctx context.Context) error {
		for range 100 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // asked, or lost
			}
			// … one step of the work …
		}
		return nil
	})
	log.Print("over: ", err)
}

// Revoke asks the holder to give the lock up.
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

// EscapePath makes a safe path element of a name that comes from a user.
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
