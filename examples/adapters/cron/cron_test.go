package cron_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	adapter "github.com/turnstile-go/turnstile/examples/adapters/cron"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

// seconds reads specs with a field for the second.
var seconds = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

const eachSecond = "* * * * * *"

// result is what a replica reports of a tick.
type result struct {
	tick    time.Time
	outcome schedule.Outcome
	err     error
}

// replica starts a process with a cron that has a job at each second.
func replica(t *testing.T, path string, f func(ctx context.Context, tick time.Time) error) (*ensemble.Process, <-chan result) {
	t.Helper()
	p := ensemble.Start(t)
	job := ensemble.Must(schedule.New(p.Manager, path))
	ctx, cancel := context.WithCancel(context.Background())
	c := cron.New(cron.WithLocation(time.UTC))
	results := make(chan result, 1000)
	_, err := adapter.Add(ctx, c, seconds, eachSecond, job, f, func(tick time.Time, o schedule.Outcome, err error) {
		results <- result{tick, o, err}
	})
	ensemble.OK(t, err)
	c.Start()
	t.Cleanup(func() {
		ended := c.Stop()
		cancel()
		ensemble.Wait(t, ended.Done(), "the jobs have ended")
	})
	return p, results
}

func TestOncePerTick(t *testing.T) {
	const enough = 3
	var mu sync.Mutex
	ran := make(map[time.Time]int)
	done := make(chan struct{})
	for range 3 {
		replica(t, "/cron/once", func(_ context.Context, tick time.Time) error {
			mu.Lock()
			defer mu.Unlock()
			ran[tick]++
			if len(ran) == enough {
				close(done)
			}
			return nil
		})
	}
	ensemble.Wait(t, done, "some ticks have been run")
	mu.Lock()
	defer mu.Unlock()
	for tick, n := range ran {
		if n != 1 || tick != tick.Truncate(time.Second) {
			t.Errorf("tick %v was run %d times", tick, n)
		}
	}
}

// A replica that loses its session in the middle of a job is told, and another one runs a later tick.
func TestLoss(t *testing.T) {
	begun := make(chan time.Time, 1)
	var calls atomic.Int64
	first, results := replica(t, "/cron/loss", func(ctx context.Context, tick time.Time) error {
		if calls.Add(1) > 1 {
			return errors.New("left to the other")
		}
		begun <- tick
		<-ctx.Done()
		return context.Cause(ctx)
	})
	tick := ensemble.Wait(t, begun, "the first replica has begun")
	later := make(chan time.Time, 1000)
	replica(t, "/cron/loss", func(_ context.Context, tick time.Time) error {
		later <- tick
		return nil
	})
	first.Expire(t)
	lost := func(r result) bool { return r.outcome == schedule.Ran && errors.Is(r.err, session.ErrLost) }
	var seen []result
	for !slices.ContainsFunc(seen, lost) {
		seen = append(seen, ensemble.Wait(t, results, "the first replica has heard of the loss"))
	}
	if last := seen[len(seen)-1]; !last.tick.Equal(tick) {
		t.Errorf("the loss ended tick %v, want %v", last.tick, tick)
	}
	if next := ensemble.Wait(t, later, "the second replica runs the job"); next.Before(tick) {
		t.Errorf("tick %v after %v", next, tick)
	}
}

// "@every" counts from the start of the process. Two replicas would give each tick two names, and run it twice.
func TestEvery(t *testing.T) {
	p := ensemble.Start(t)
	job := ensemble.Must(schedule.New(p.Manager, "/cron/every"))
	if _, err := adapter.Add(t.Context(), cron.New(), adapter.Parser, "@every 1h", job, nil, nil); err == nil {
		t.Error("@every was taken")
	}
	if _, err := adapter.Add(t.Context(), cron.New(), adapter.Parser, "@hourly", job, nil, nil); err != nil {
		t.Error(err)
	}
}
