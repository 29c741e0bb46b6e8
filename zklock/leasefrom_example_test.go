package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Inside Do, queue.LeaseFrom gives the lease. Its token goes with each write to a store that compares
// tokens, and its guard makes a write to ZooKeeper fail once the lock is lost. Package fence has the
// comparison for SQL databases.
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

	var highest int64 // the token of the last holder that has claimed the store
	claim := func(token int64) error {
		if token < highest { // an equal one is the same holder, which may write again
			return fence.ErrStale
		}
		highest = token
		return nil
	}
	pay := func(ctx context.Context) error {
		lease, ok := queue.LeaseFrom(ctx)
		if !ok {
			return errors.New("called without a lock")
		}
		token, err := lease.Token(ctx)
		if err != nil {
			return err
		}
		// A real store claims, reads and writes in one step.
		fmt.Println("the store accepts the token:", claim(token) == nil)
		fmt.Println("and for a second write:", claim(token) == nil)

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
	// and for a second write: true
	// written under the guard: true
}
