package zklock_test

import (
	"context"
	"fmt"
	"log"

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
