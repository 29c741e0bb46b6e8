package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// AcquireN takes several leases, all or none.
func ExampleSemaphore_AcquireN() {
	m, stop := start()
	defer stop()
	ctx := context.Background()
	workers, err := semaphore.New(m, "/limits/workers", 4)
	if err != nil {
		log.Fatal(err)
	}
	three, err := workers.AcquireN(ctx, 3)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := workers.TryAcquireN(ctx, 2); errors.Is(err, queue.ErrBusy) {
		fmt.Println("two more are not free")
	}
	if err := three.Release(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := workers.AcquireN(ctx, 5); errors.Is(err, session.ErrInvalid) {
		fmt.Println("five are more than there are")
	}
	// Output:
	// two more are not free
	// five are more than there are
}

// TryLock is for work that can wait until another time.
func ExampleSemaphore_TryLock() {
	m, stop := start()
	defer stop()
	scans, err := semaphore.New(m, "/limits/scans", 1)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		got, err := scans.TryLock(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(got)
	}
	if err := scans.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// false
}

// Resize changes the limit for everybody.
func ExampleSemaphore_Resize() {
	m, stop := start()
	defer stop()
	ctx := context.Background()
	exports, err := semaphore.New(m, "/limits/exports", 1)
	if err != nil {
		log.Fatal(err)
	}
	if err := exports.Lock(ctx); err != nil {
		log.Fatal(err)
	}
	if err := exports.Resize(ctx, 2); err != nil {
		log.Fatal(err)
	}
	got, err := exports.TryLock(ctx)
	fmt.Println(got, err)
	// Output: true <nil>
}

// The number in the code of a fleet changes from 3 to 5, while processes of both versions are running.
func ExampleSemaphore_ResetLimit() {
	m, stop := start()
	defer stop()
	ctx := context.Background()
	before, err := semaphore.New(m, "/limits/exports", 3) // a process of the old version
	if err != nil {
		log.Fatal(err)
	}
	if err := before.Resize(ctx, 3); err != nil { // now 3 counts for both versions
		log.Fatal(err)
	}
	after, err := semaphore.New(m, "/limits/exports", 5) // a process of the new version
	if err != nil {
		log.Fatal(err)
	}
	limit, err := after.Limit(ctx)
	fmt.Println(limit, err)
	if err := after.ResetLimit(ctx); err != nil { // once no process of the old version is running
		log.Fatal(err)
	}
	limit, err = after.Limit(ctx)
	fmt.Println(limit, err)
	if _, err := before.TryAcquire(ctx); errors.Is(err, queue.ErrConflict) {
		fmt.Println("the old version gets no lease any more")
	}
	// Output:
	// 3 <nil>
	// 5 <nil>
	// the old version gets no lease any more
}

// WithCuratorLayout shares the leases with Java programs.
func ExampleWithCuratorLayout() {
	m, stop := start()
	defer stop()
	// In Java: new InterProcessSemaphoreV2(client, "/limits/exports", 3)
	exports, err := semaphore.New(m, "/limits/exports", 3, semaphore.WithCuratorLayout())
	if err != nil {
		log.Fatal(err)
	}
	if err := exports.Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("one of three, in Go and Java")
	if err := exports.Unlock(); err != nil {
		log.Fatal(err)
	}
	// Output: one of three, in Go and Java
}

var quiet = session.WithLogger(slog.New(slog.DiscardHandler))

// start connects to a server in this process.
func start() (*session.Manager, func()) {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	m, err := session.Connect(context.Background(), srv.ConnectString(), quiet)
	if err != nil {
		log.Fatal(err)
	}
	return m, func() {
		m.Close()
		srv.Close()
	}
}
