package zklock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// inBoth calls f while it holds the lock at a path in two ensembles. It waits for ten seconds at most.
func inBoth(ctx context.Context, east, west *session.Manager, path string, f func(context.Context) error) error {
	e, err := zklock.New(east, path)
	if err != nil {
		return err
	}
	w, err := zklock.New(west, path)
	if err != nil {
		return err
	}
	both, err := zklock.Multi(w, e) // takes them in the order of the ensembles' names: east first
	if err != nil {
		return err
	}
	return both.Do(zklock.WithMaxWait(ctx, 10*time.Second), f) // the context of f ends when either is lost
}

// A lock in two ensembles. Each manager says which ensemble it is for, by the same name in all processes.
func ExampleMulti_ensembles() {
	ctx := context.Background()
	managers := make(map[string]*session.Manager)
	for _, name := range []string{"east", "west"} {
		server, err := zktest.New()
		if err != nil {
			log.Fatal(err)
		}
		defer server.Close()
		m, err := session.Connect(ctx, server.ConnectString(), session.WithName(name))
		if err != nil {
			log.Fatal(err)
		}
		defer m.Close()
		managers[name] = m
	}
	err := inBoth(ctx, managers["east"], managers["west"], "/locks/prices", func(context.Context) error {
		fmt.Println("alone, for clients of either ensemble")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: alone, for clients of either ensemble
}
