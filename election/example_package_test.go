package election_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/turnstile-go/turnstile/election"
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
	if err := serve(context.Background(), server.ConnectString()); !errors.Is(err, errBilled) {
		log.Fatal(err)
	}
	// Output: the only one that bills
}

func serve(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil {
		return err
	}
	defer m.Close()
	e, err := election.New(m, "/election/billing", election.WithID("10.0.0.7:8080"))
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context) error {
		return bill(ctx) // only here, as long as ctx lasts
	})
}

// errBilled ends the example. A leader returns an error when it cannot go on.
var errBilled = errors.New("all is billed")

func bill(ctx context.Context) error {
	fmt.Println("the only one that bills")
	return errors.Join(ctx.Err(), errBilled)
}
