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
// the lock is in use.
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
			Policy: func(_ queue.Node, c queue.Config) (queue.Policy, error) {
				limit, err := strconv.Atoi(string(c.Data))
				return queue.Policy{Slack: limit - 1}, err
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

	// To raise the limit, somebody sets the data. To lower it takes more: see [queue.Configuration].
	s, err := manager.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Set(ctx, q.Path(), []byte("2"), -1); err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, semaphore)
	fmt.Println("busy:", errors.Is(err, queue.ErrBusy))

	// Output:
	// busy: true
	// busy: false
}
