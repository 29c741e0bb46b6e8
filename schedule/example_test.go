package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Three replicas fire at each tick, and one of them runs the job. One that fails is followed by another.
func ExampleJob_Run() {
	server, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()

	tick := time.Date(2024, 11, 22, 10, 0, 0, 0, time.UTC)
	var failed atomic.Bool // the first time
	var replicas sync.WaitGroup
	for range 3 {
		replicas.Go(func() { // in practice, a process with a timer
			m, err := session.Connect(ctx, server.ConnectString())
			if err != nil {
				log.Fatal(err)
			}
			defer m.Close()
			job, err := schedule.New(m, "/jobs/report")
			if err != nil {
				log.Fatal(err)
			}
			_, err = job.Run(ctx, tick, func(context.Context) error {
				if !failed.Swap(true) {
					fmt.Println("no report of", tick.Format(time.Kitchen))
					return errors.New("the printer is out of paper")
				}
				fmt.Println("report of", tick.Format(time.Kitchen))
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	replicas.Wait()
	// Unordered output:
	// no report of 10:00AM
	// the printer is out of paper
	// report of 10:00AM
}

// Ticks that no replica has run are made up for.
func ExampleJob_CatchUp() {
	server, err := zktest.New()
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
	job, err := schedule.New(m, "/jobs/report")
	if err != nil {
		log.Fatal(err)
	}
	ten := time.Date(2024, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, tick := range []time.Time{ten, ten.Add(3 * time.Hour)} { // all replicas are down in between
		outcome, err := catchUp(ctx, job, tick)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tick.Format(time.Kitchen), outcome)
	}
	// Output:
	// report of 10:00AM
	// 10:00AM ran
	// report of 11:00AM
	// report of 12:00PM
	// report of 1:00PM
	// 1:00PM ran
}

// catchUp makes up for the reports that are missing, and makes that of a tick.
func catchUp(ctx context.Context, job *schedule.Job, tick time.Time) (schedule.Outcome, error) {
	hourly := func(tick time.Time) time.Time { return tick.Add(time.Hour) }
	outcome, err := job.CatchUp(ctx, tick, hourly, func(_ context.Context, tick time.Time) error {
		fmt.Println("report of", tick.Format(time.Kitchen))
		return nil
	})
	var skipped *schedule.SkippedError
	if errors.As(err, &skipped) { // another replica had begun a later tick
		log.Printf("%d reports from %v to %v are missing", skipped.Ticks, skipped.First, skipped.Last)
		err = skipped.Err
	}
	return outcome, err
}
