package session_test

import (
	"context"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The example of the package's documentation, on a server in this process.
func Example() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if err := work(context.Background(), server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	// Output: registered as /workers/host7
}

func work(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		return err
	}
	// The node is there for as long as the session is.
	node, err := s.Enter(ctx, session.NewNode{Dir: "/workers", Name: "host7", Fixed: true})
	if err != nil {
		return err
	}
	fmt.Println("registered as", node.Path)
	return nil
}
