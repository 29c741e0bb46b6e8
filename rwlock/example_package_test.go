package rwlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation, on a server in this process.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if err := showPrices(context.Background(), server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	// Output: reading beside other readers
}

func showPrices(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := rwlock.New(m, "/locks/prices")
	if err != nil {
		return err
	}
	return lock.Reader().Do(ctx, func(ctx context.Context) error { // lock.Do is for writers
		return readPrices(ctx) // ctx ends when the lock is lost
	})
}

func readPrices(ctx context.Context) error {
	fmt.Println("reading beside other readers")
	return ctx.Err()
}
