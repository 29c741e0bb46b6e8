package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

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

// A service refuses a request at once if too many others are ahead.
func ExampleWithMaxWaiters() {
	m, closeAll := connectExample()
	defer closeAll()
	invoices, err := zklock.NewKeyed(m, "/locks/invoices", zklock.WithMaxWaiters(10)) // holder and waiters
	if err != nil {
		log.Fatal(err)
	}
	err = invoices.Do(context.Background(), "42", func(context.Context) error { return nil })
	switch {
	case errors.Is(err, queue.ErrBusy):
		fmt.Println("503: try again later")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("200")
	}
	// Output: 200
}
