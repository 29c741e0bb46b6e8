package zklock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation, on a server in this process.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if err := chargeInvoice(context.Background(), server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	// Output: alone with invoice 42
}

func chargeInvoice(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context) error {
		return charge(ctx, 42) // ctx ends when the lock is lost
	})
}

func charge(ctx context.Context, invoice int) error {
	fmt.Println("alone with invoice", invoice)
	return ctx.Err()
}
