package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Two of the leases and then one are all that there are.
func Example() {
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

	semaphore := &kinds.Kind{
		Name:     "semaphore",
		Prefixes: []string{kinds.PrefixLease},
		Policy: func(me kinds.Node) kinds.Policy {
			return kinds.Policy{
				Weight: func(ahead kinds.Node) int { return ahead.Weight },
				Slack:  3 - me.Weight,
			}
		},
	}
	q, err := queue.New(manager, "/reports/workers")
	if err != nil {
		log.Fatal(err)
	}
	for _, weight := range []int{2, 1, 1} {
		_, err := q.TryAcquire(ctx, queue.Request{Kind: semaphore, Weight: weight})
		fmt.Println(weight, "busy:", errors.Is(err, queue.ErrBusy))
	}

	// Output:
	// 2 busy: false
	// 1 busy: false
	// 1 busy: true
}
