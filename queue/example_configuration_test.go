package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A semaphore whose limit is in its directory, so that all processes go by the same one. It is raised while
// the lock is in use. A kind whose limit can be lowered too has to say so, by [queue.Tightening].
func ExampleConfiguration() {
	server, err := zktest.New() // in this process, in place of an ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	manager, err := session.Connect(ctx, "zk:2181", session.WithDialer(server.Dialer()))
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()

	semaphore := queue.Request{Kind: &queue.Kind{
		Name:     "semaphore",
		Prefixes: []string{queue.PrefixLease},
		Configuration: &queue.Configuration{
			Config: []byte("1"), // until somebody sets another limit
			Policy: func(_ queue.Node, c queue.Config) (queue.Policy, queue.Tightening, error) {
				limit, err := strconv.Atoi(string(c.Data))
				return queue.Policy{Slack: limit - 1}, queue.Tightening{}, err
			},
		},
	}}
	q, err := queue.New(manager, "/reports/workers")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Acquire(ctx, semaphore); err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, semaphore)
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))

	// The child "limit" keeps the directory, and so the limit, while nobody contends.
	raise := func(old queue.Config) ([]byte, error) {
		limit, err := strconv.Atoi(string(old.Data))
		return []byte(strconv.Itoa(limit + 1)), err
	}
	if err := q.Reconfigure(ctx, "limit", true, raise); err != nil {
		log.Fatal(err)
	}
	config, err := q.ReadConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("limit: %s\n", config.Data)
	_, err = q.TryAcquire(ctx, semaphore)
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))

	// Output:
	// busy: true
	// limit: 2
	// busy: false
}
