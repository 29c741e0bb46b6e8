package schedule_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// The goroutines of an owner run one job at a time, as others do: an owner that has the job's lock does not enter it
// again. In the job's function the owner is there for other locks.
func TestOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		m := connect()
		job := newJob(t, m, "/jobs/owned")
		mx, err := zklock.New(m, "/locks/owned")
		must(t, err)
		owner := queue.WithOwner(t.Context())
		must(t, mx.Lock(owner))
		running, runs := 0, 0
		var all sync.WaitGroup
		for _, n := range []int{1, 1, 2} {
			all.Go(func() {
				_, err := job.Run(owner, later(n), func(ctx context.Context) error {
					if running++; running > 1 {
						t.Error("two functions of a job run at once")
					}
					defer func() { running-- }()
					runs++
					time.Sleep(time.Minute)
					must(t, mx.Lock(ctx)) // again
					return mx.Unlock()
				})
				must(t, err)
			})
			time.Sleep(time.Second)
		}
		all.Wait()
		if runs != 2 {
			t.Errorf("%d runs of 2 ticks", runs)
		}
		if outcome, err := job.TryRun(owner, later(3), func(ctx context.Context) error {
			outcome, err := job.TryRun(ctx, later(4), count(&runs))
			if outcome != schedule.Busy {
				t.Errorf("a job within itself: %v", outcome)
			}
			return err
		}); outcome != schedule.Ran || err != nil {
			t.Error(outcome, err)
		}
	})
}
