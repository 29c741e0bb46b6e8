package zktest_test

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// A test in which the reply to a create is lost.
func ExampleProxy_CutAfterCommit() {
	_ = func(t *testing.T) { // TestLostReply
		ensemble := zktest.StartReal(t)
		proxy := zktest.StartProxy(t, ensemble.Addr(0))

		cut := proxy.CutAfterCommit(zktest.On(zktest.OpCreate, "/locks/"))
		go func() {
			// Take a lock through proxy.Addr().
		}()
		<-cut.Hit() // the node is there, and the client does not know

		// Expect that the lock is taken all the same, with one node.
	}
}

// A test in which the network is down for a while.
func ExampleProxy_Blackhole() {
	_ = func(t *testing.T) { // TestPartition
		ensemble := zktest.StartReal(t, zktest.TickTime(100*time.Millisecond))
		proxy := zktest.StartProxy(t, ensemble.Addr(0))

		proxy.Blackhole(zktest.Both)
		zktest.Eventually(t, 10*time.Second, "the lock is lost", func() bool {
			return true // ask it
		})
		proxy.Heal()
	}
}

// A program, or a TestMain, that kills the leader of an ensemble of three.
func ExampleNewReal() {
	ensemble, err := zktest.NewReal(zktest.Servers(3))
	if err != nil {
		log.Fatal(err)
	}
	defer ensemble.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leader, err := ensemble.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := ensemble.Restart(ctx, leader); err != nil {
		log.Fatal(err)
	}
	fmt.Println("again at", ensemble.ConnectString())
}

func ExampleOn() {
	create := zktest.On(zktest.OpCreate, "/locks/")
	fmt.Println(create(zktest.Request{Op: zktest.OpCreate, Path: "/locks/a"}))
	fmt.Println(create(zktest.Request{Op: zktest.OpCreate2, Path: "/locks/a"}))
	fmt.Println(create(zktest.Request{Op: zktest.OpCreate, Path: "/other"}))
	// Output:
	// true
	// false
	// false
}
