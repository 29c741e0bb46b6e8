package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A mutex is shared with another library, whose contenders take turns by their sequence numbers too, and have nodes such as
// ticket-0000000007. All libraries at the path must know the prefixes of each other.
func ExampleKind_prefixes() {
	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, "zk:2181", session.WithDialer(server.Dialer()))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	kind := queue.Mutex()
	kind.Prefixes = append(kind.Prefixes, "ticket-") // our own nodes have the first prefix
	q, err := queue.New(m, "/tickets")
	if err != nil {
		log.Fatal(err)
	}
	lease, err := q.Acquire(ctx, queue.Request{Kind: kind})
	if err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, queue.Request{Kind: kind, Prefix: "ticket-"}) // as the other library does
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: busy: true
}
