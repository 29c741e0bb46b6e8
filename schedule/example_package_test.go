package schedule_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/turnstile-go/turnstile/schedule"
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
	if err := serve(context.Background(), server.ConnectString()); err != nil {
		log.Fatal(err)
	}
	// Output: the report of this hour
}

func serve(ctx context.Context, servers string) error {
	m, err := session.Connect(ctx, servers) // once per process: "zk1:2181,zk2:2181,zk3:2181"
	if err != nil {
		return err
	}
	defer m.Close()
	job, err := schedule.New(m, "/jobs/report")
	if err != nil {
		return err
	}
	// In each replica, once an hour:
	tick := time.Now().Truncate(time.Hour) // the same in all replicas
	_, err = job.Run(ctx, tick, func(ctx context.Context) error {
		return report(ctx, tick) // in one of them
	})
	return err
}

func report(ctx context.Context, _ time.Time) error {
	fmt.Println("the report of this hour")
	return ctx.Err()
}
