package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
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

// Lock and Unlock are for work that is not one function. A context bounds the wait, and Unlock says
// whether the lock was lost in the meantime.
func ExampleMutex_Lock() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
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
	// Output: alone with invoice 42
}

// Do ties the work to the lock: its context ends when the lock is lost.
func ExampleMutex_Do() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context) error {
		for step := range 3 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // the lock is lost, or ctx of the caller has ended
			}
			fmt.Println("step", step)
		}
		return nil
	})
	switch {
	case errors.Is(err, session.ErrLost):
		log.Print("the work was cut short: ", err)
	case err != nil:
		log.Print(err)
	}
	// Output:
	// step 0
	// step 1
	// step 2
}

// TryLock is for work that is not needed while another process does it.
func ExampleMutex_TryLock() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/cleanup")
	if err != nil {
		log.Fatal(err)
	}
	cleanup := func(work func()) {
		got, err := lock.TryLock(context.Background())
		switch {
		case err != nil:
			log.Print("could not tell: ", err)
		case !got:
			fmt.Println("another one is at work")
		default:
			defer lock.Unlock()
			work()
		}
	}
	cleanup(func() {
		fmt.Println("at work")
		cleanup(nil) // as another process might
	})
	// Output:
	// at work
	// another one is at work
}

// Locker is for code that takes a sync.Locker, which cannot return the loss of the lock. A program
// that must not go on after a loss ends in the function that is called then.
func ExampleMutex_Locker() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/ledger")
	if err != nil {
		log.Fatal(err)
	}
	l := lock.Locker(func(err error) {
		log.Fatal("the lock is gone: ", err)
	})
	changed := sync.NewCond(l)
	changed.L.Lock()
	defer changed.L.Unlock()
	fmt.Println("alone, in all processes")
	// Output: alone, in all processes
}

// An owner (queue.WithOwner) lets a function that holds the lock call one that locks it.
func ExampleMutex_Do_owner() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/account-7")
	if err != nil {
		log.Fatal(err)
	}
	transfer := func(ctx context.Context) error {
		return lock.Do(ctx, func(context.Context) error {
			fmt.Println("transferred")
			return nil
		})
	}
	settle := func(ctx context.Context) error {
		return lock.Do(ctx, func(ctx context.Context) error {
			return transfer(ctx) // enters at once, as the same owner
		})
	}
	ctx := queue.WithOwner(context.Background())
	if err := settle(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: transferred
}

// Acquire returns a lease. Its guard makes a write to ZooKeeper fail once the lock is lost. For a
// database there is its token: see package fence, and the example of Do.
func ExampleMutex_Acquire() {
	ctx := context.Background()
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	write := func() error {
		_, err := s.Multi(ctx, lease.Guard(), &zk.CreateRequest{Path: "/paid-"}) // both or none
		return err
	}
	fmt.Println("written:", write() == nil)
	if err := s.Delete(ctx, lease.Path(), -1); err != nil { // an operator breaks the lock
		log.Fatal(err)
	}
	fmt.Println("refused without the lock:", errors.Is(write(), zk.ErrNoNode))
	// Output:
	// written: true
	// refused without the lock: true
}

// Multi takes several locks, all or none, in the same order in every process.
func ExampleMulti() {
	m, closeAll := connectExample()
	defer closeAll()
	from, err := zklock.New(m, "/locks/account-7")
	if err != nil {
		log.Fatal(err)
	}
	to, err := zklock.New(m, "/locks/account-8")
	if err != nil {
		log.Fatal(err)
	}
	both, err := zklock.Multi(from, to)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // for both
	defer cancel()
	err = both.Do(ctx, func(ctx context.Context) error {
		fmt.Println("moving the money")
		return ctx.Err() // ctx ends when either lock is lost
	})
	if err != nil {
		log.Print("not moved, or not known to be safe: ", err)
	}
	// Output: moving the money
}

// A MultiLease is what Acquire of a MultiLock returns. It has a lease of each lock, in the order of the arguments of
// Multi. Its Done is closed, and its Err is not nil, when any of them is lost.
func ExampleMultiLease() {
	ctx := context.Background()
	m, closeAll := connectExample()
	defer closeAll()
	from, err := zklock.New(m, "/locks/account-7")
	if err != nil {
		log.Fatal(err)
	}
	to, err := zklock.New(m, "/locks/account-8")
	if err != nil {
		log.Fatal(err)
	}
	both, err := zklock.Multi(from, to)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := both.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range lease.Leases() {
		token, err := one.Token(ctx) // each store gets the token of its own lock
		fmt.Println("held:", one.Err() == nil, "token:", token > 0, err)
	}
	if err := lease.Release(ctx); err != nil {
		log.Print(err) // lost, or the servers have not confirmed it yet
	}
	fmt.Println("released:", errors.Is(lease.Err(), queue.ErrReleased))
	// Output:
	// held: true token: true <nil>
	// held: true token: true <nil>
	// released: true
}

// A process in which many goroutines want the same lock has one place in the queue for all of them.
// Up to 51 of them hold the lock in turn before another process can.
func ExampleWithLocalHandover() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/stock", zklock.WithLocalHandover(50))
	if err != nil {
		log.Fatal(err)
	}
	items := 0
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			err := lock.Do(context.Background(), func(ctx context.Context) error {
				items++
				return ctx.Err() // ctx ends when the lock is lost
			})
			if err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
	fmt.Println(items, "items")
	// Output: 100 items
}

// Revoke asks the holder to give the lock up. The context of a Do ends.
func ExampleRevoke() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/compaction")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context) error {
		go askHolders(m, lock) // as another process might
		<-ctx.Done()           // a real holder looks at ctx between the steps of its work
		return context.Cause(ctx)
	})
	fmt.Println("over:", err)
	fmt.Println("asked:", errors.Is(err, queue.ErrRevoked))
	// Output:
	// over: lock /locks/compaction: another client has asked for the lock
	// asked: true
}

// A holder that has a lease is told that another client asks for the lock, and decides.
func ExampleRevoke_lease() {
	ctx := context.Background()
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/compaction")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := lock.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	askHolders(m, lock)
	<-lease.Revoked()
	fmt.Println("asked; still held:", lease.Err() == nil)
	if err := lease.Release(ctx); err != nil {
		log.Print(err)
	}
	// Output: asked; still held: true
}

// askHolders asks the holders of a lock to give it up.
func askHolders(m *session.Manager, lock *zklock.Mutex) {
	ctx := context.Background()
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

// A job that many replicas start skips its turn while one of them runs it.
func ExampleMutex_TryDo() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/report") // those that skip write nothing
	if err != nil {
		log.Fatal(err)
	}
	report := func(ctx context.Context) error {
		ran, err := lock.TryDo(ctx, func(context.Context) error { return nil }) // in another replica
		fmt.Println("another one has run it too:", ran, err)
		return nil
	}
	ran, err := lock.TryDo(context.Background(), report) // false and nil: another replica is at it
	fmt.Println("run:", ran, err)
	// Output:
	// another one has run it too: false <nil>
	// run: true <nil>
}

// A lock for each invoice. Nobody makes or removes them.
func ExampleKeyed() {
	m, closeAll := connectExample()
	defer closeAll()
	invoices, err := zklock.NewKeyed(m, "/locks/invoices") // once in a process
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"2026/42", "2026/43"} {
		err := invoices.Do(context.Background(), id, func(context.Context) error {
			fmt.Println("alone with invoice", id, "at", invoices.Path(id))
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// alone with invoice 2026/42 at /locks/invoices/2026%2F42
	// alone with invoice 2026/43 at /locks/invoices/2026%2F43
}

var errTooLong = errors.New("the work takes too long")

// Work that takes too long ends by its own context. The lock is held until the function returns.
func ExampleMutex_Do_timeout() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(context.Background(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Millisecond, errTooLong)
		defer cancel()
		<-ctx.Done() // work that looks at its context
		return context.Cause(ctx)
	})
	fmt.Println(err)
	// Output: the work takes too long
}

// Work that looks at no context cannot be ended. Somebody can be told that it takes too long.
func ExampleMutex_Lock_timeout() {
	m, closeAll := connectExample()
	defer closeAll()
	lock, err := zklock.New(m, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	if err := lock.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	told := make(chan struct{})
	late, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	stop := context.AfterFunc(late, func() {
		fmt.Println("the report takes too long; the lock is held:", lock.Held())
		close(told)
	})
	<-told // the work
	stop() // before cancel, which would call the function
	cancel()
	if err := lock.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: the report takes too long; the lock is held: true
}
