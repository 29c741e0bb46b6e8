// Package gocron runs jobs of github.com/go-co-op/gocron/v2 on one of many replicas.
//
// gocron has three interfaces for that, and none of them ends a job after a loss:
//
//   - Elector is asked once, before a job begins. A job that has begun goes on after the leadership is lost, while another
//     replica leads. [Elector.Task] gives the job a context that ends with the term. A leader that changes around a tick
//     can run the job twice, or not at all: the next leader cannot tell whether the one before it has run it.
//   - Locker is asked for a lock at each run. Do not implement it. A replica whose timer is 20 ms late finds the lock of a
//     short job free again, and runs the job once more. (A Lock that waits would even have each replica run it.)
//   - So use [Once], which needs neither: the record of package schedule says which tick was run.
//
// A job that writes to a store has its fencing token from queue.LeaseFrom, or election.Term in a [Elector.Task].
package gocron

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
)

// Once returns a task for gocron.NewTask that runs f once at each tick, on one of the replicas. A replica that comes while
// another one runs f waits for at most an interval, and takes over if that one fails or dies. now is time.Now, or that of
// the scheduler's clock. All replicas must begin at a multiple of the interval: see gocron.WithStartAt.
func Once(job *schedule.Job, every time.Duration, now func() time.Time, f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		// gocron does not say for which time of its schedule it runs the task.
		_, err := job.Run(queue.WithMaxWait(ctx, every), now().Truncate(every), f)
		return err
	}
}

// ErrNotLeader is returned if this replica does not lead.
var ErrNotLeader = errors.New("another replica leads")

// Elector is a gocron.Elector.
type Elector struct {
	election *election.Election

	mu   sync.Mutex
	term context.Context // of the election, or nil
	jobs sync.WaitGroup  // of the term
}

// NewElector returns an Elector for a replica. [Elector.Run] has to run beside the scheduler.
func NewElector(e *election.Election) *Elector { return &Elector{election: e} }

// Run stands for election until ctx ends. At the end of a term it waits for the jobs of [Elector.Task].
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Run(ctx, func(ctx context.Context) error {
		e.begin(ctx)
		<-ctx.Done()
		e.begin(nil)
		e.jobs.Wait()
		return nil
	})
}

func (e *Elector) begin(term context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = term
}

// IsLeader returns nil if this replica leads, and [ErrNotLeader] otherwise.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term == nil || e.term.Err() != nil {
		return ErrNotLeader
	}
	return nil
}

// Task returns a task for gocron.NewTask that runs f if this replica leads. The context of f ends with the term, and with
// that of the scheduler. election.Term returns the fencing token from it.
func (e *Elector) Task(f func(context.Context) error) func(context.Context) error {
	return func(job context.Context) error {
		e.mu.Lock()
		term := e.term
		if term == nil {
			e.mu.Unlock()
			return ErrNotLeader
		}
		e.jobs.Add(1)
		e.mu.Unlock()
		defer e.jobs.Done()
		ctx, cancel := context.WithCancelCause(term)
		defer cancel(nil)
		defer context.AfterFunc(job, func() { cancel(context.Cause(job)) })()
		return f(ctx)
	}
}
