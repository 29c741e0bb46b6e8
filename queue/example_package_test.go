package queue_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation: a mutex, on a server in this process.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	manager, err := session.Connect(ctx, server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()
	if err := underMutex(ctx, manager); err != nil {
		log.Fatal(err)
	}
	// Output:
	// held: true
	// another try: acquire /reports/nightly: lock is busy
}

func underMutex(ctx context.Context, manager *session.Manager) error {
	mutex := &queue.Kind{
		Name:     "mutex",
		Prefixes: []string{queue.PrefixLock},
		Policy:   func(queue.Node) queue.Policy { return queue.Policy{} }, // no node may be ahead
	}
	q, err := queue.New(manager, "/reports/nightly")
	if err != nil {
		return err
	}
	lease, err := q.Acquire(ctx, queue.Request{Kind: mutex})
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	fmt.Println("held:", lease.Err() == nil)
	_, err = q.TryAcquire(ctx, queue.Request{Kind: mutex})
	fmt.Println("another try:", err)
	return nil
}
