package semaphore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/semaphore"
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
	if err := runExport(context.Background(), server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	// Output: one of at most three, in all processes
}

func runExport(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil {
		return err
	}
	defer m.Close()
	exports, err := semaphore.New(m, "/limits/exports", 3) // three at a time, in all processes
	if err != nil {
		return err
	}
	return exports.Do(ctx, func(ctx context.Context) error {
		return export(ctx) // ctx ends when the lease is lost
	})
}

func export(ctx context.Context) error {
	fmt.Println("one of at most three, in all processes")
	return ctx.Err()
}
