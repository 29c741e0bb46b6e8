package session_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The servers want to know who their clients are, and the nodes of the lock are for this user alone.
func ExampleWithSASL() {
	ctx := context.Background()
	server, err := zktest.New(zktest.SASLUser("shop", "secret"), zktest.RequireSASL()) // a program has its servers instead
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	m, err := session.Connect(ctx, server.ConnectString(), quietExample(),
		session.WithSASL(session.DigestMD5("shop", "secret")),
		session.WithACL(zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "shop"}))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locks/invoice-42")
	if err != nil {
		log.Fatal(err)
	}
	err = lock.Do(ctx, func(context.Context) error {
		fmt.Println("at work")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// at work
}
