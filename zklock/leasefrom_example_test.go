package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Inside Do, queue.LeaseFrom gives the lease. Its token goes with a write to a store that compares
// tokens, and its guard makes a write to ZooKeeper fail once the lock is lost.
func ExampleMutex_Do_fencing() {
	server, err := zktest.New() // your ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	m, err := session.Connect(ctx, server.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}

	var newest int64 // what the store has seen
	pay := func(ctx context.Context) error {
		lease, ok := queue.LeaseFrom(ctx)
		if !ok {
			return errors.New("called without a lock")
		}
		token, err := lease.Token(ctx)
		if err != nil {
			return err
		}
		fmt.Println("the store accepts the token:", token > newest)
		newest = token

		s, err := m.Session(ctx)
		if err != nil {
			return err
		}
		_, err = s.Multi(ctx, lease.Guard(), &zk.CreateRequest{Path: "/paid-42"})
		fmt.Println("written under the guard:", err == nil)
		return err
	}
	if err := lock.Do(ctx, pay); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the store accepts the token: true
	// written under the guard: true
}
