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

	tick := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
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

// Ticks that no replica has run can be made up for.
func ExampleJob_Last() {
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
	report := func(_ context.Context, tick time.Time) error {
		fmt.Println("report of", tick.Format(time.Kitchen))
		return nil
	}
	ten := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, now := range []time.Time{ten, ten.Add(3 * time.Hour)} { // all replicas are down in between
		if err := catchUp(ctx, job, now, report); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// report of 10:00AM
	// report of 11:00AM
	// report of 12:00PM
	// report of 1:00PM
}

// catchUp runs all ticks behind the record, up to now.
func catchUp(ctx context.Context, job *schedule.Job, now time.Time, report func(context.Context, time.Time) error) error {
	last, err := job.Last(ctx)
	if err != nil {
		return err
	}
	tick := last.Tick.Add(time.Hour)
	switch {
	case last.Tick.IsZero(): // nothing has run yet
		tick = now
	case !last.Done:
		tick = last.Tick
	}
	for ; !tick.After(now); tick = tick.Add(time.Hour) {
		if _, err := job.Run(ctx, tick, func(ctx context.Context) error { return report(ctx, tick) }); err != nil {
			return err
		}
	}
	return nil
}
