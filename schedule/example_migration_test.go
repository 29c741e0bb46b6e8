package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var errNotMigrated = errors.New("the migration has failed, or its last try is under way")

// migrateOnce runs a migration in one of the replicas that start. The others wait until it is done. The version is the
// tick: a date that the release has.
func migrateOnce(ctx context.Context, m *session.Manager, version time.Time, migrate func(context.Context) error) error {
	job, err := schedule.New(m, "/migrations/search", schedule.WithMaxTries(3))
	if err != nil {
		return err
	}
	outcome, err := job.Run(ctx, version, migrate)
	if outcome == schedule.TriesUsedUp {
		return errNotMigrated
	}
	return err
}

// A migration that runs once, before the replicas serve.
func Example_migration() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	for range 3 { // in practice, processes, and at the same time
		m, err := session.Connect(ctx, server.ConnectString())
		if err != nil {
			log.Fatal(err)
		}
		defer m.Close()
		err = migrateOnce(ctx, m, time.Date(2024, 11, 26, 0, 0, 0, 0, time.UTC), func(context.Context) error {
			fmt.Println("building the index")
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("serving")
	}
	// Output:
	// building the index
	// serving
	// serving
	// serving
}
