package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Run calls f if the tick is open, while it holds the job's lock. A tick is open if the record has no later
// one, and says neither that the tick is done nor that it was tried as often as it may be ([WithMaxTries]).
// Run reports whether it has called f.
//
// If another replica holds the lock, Run waits, so that it runs the job if that replica fails or dies. It
// returns false and nil as soon as the record says that the tick is not open any more. With WithMaxTries(1)
// that is when the other replica has begun. So the deadline of ctx is the time at which the tick is not worth
// running any more, for example the next tick. [queue.WithMaxWait] bounds what comes before f, all together: the
// waits for the record and for the lock. [Job.TryRun] does not wait for another replica.
//
// The context of f is that of a [zklock.Mutex.Do]: it ends when ctx ends, when the lock is lost, when another client
// asks for the lock ([zklock.Revoke], turnstile break) and when the manager is closed. If f returns an error after such
// a request, the error of Run matches [queue.ErrRevoked], and the try counts as one that has failed. If the request
// came before the lock was granted, Run returns that error and does not call f. [queue.LeaseFrom] returns the lease
// from the context of f, for its fencing token.
//
// If f returns nil, Run writes into the record that the tick is done. It does so even if ctx has ended. Then it waits
// until the servers have confirmed that or the lock is lost, for a session timeout at most. If f returns an error or
// panics, the tick stays open for other replicas, which wait in Run, and for the next Run, unless it may not be tried
// again.
//
// Run returns the error of f. If the lock was lost before the record was written, the error matches
// [session.ErrLost], even if f has returned nil, and the tick is still open. Other errors are those of
// [zklock.Mutex.Lock], [ErrRecord], and what the servers refuse. If ran is false, f was not called, and the
// error matches ctx.Err() if ctx has ended.
//
// An owner ([queue.WithOwner]) does not enter the lock of a job again. So a Run that f calls of the same job waits
// until its context ends.
//
// A nil f and a bad tick are errors that match [session.ErrInvalid], before anything is sent. A tick is a
// time of the years 1 to 9999 that is not the zero time. It is one tick in every time zone.
//
// A Run that does not run the job costs one read, or, if it comes while another replica is at it, a place in
// the queue of the lock, and two or three reads. One that does costs two writes more than the lock.
func (j *Job) Run(ctx context.Context, tick time.Time, f func(context.Context) error) (ran bool, err error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.Run")
	wait := patienceOf(ctx)
	if open, err := j.openAtFirst(wait.left(ctx), tick, f); !open {
		return false, err
	}
	var pace rounds.Pace
	for {
		ran, err = j.inTurn(ctx, wait, tick, f)
		if ran || !errors.Is(err, session.ErrLost) || ctx.Err() != nil {
			return ran, err
		}
		// The lock was lost before f was called. To the caller that is a part of the wait.
		bounded, end := queue.BeginWait(wait.left(ctx))
		if err := end(pace.Wait(bounded, nil)); err != nil {
			return false, j.failed(err)
		}
	}
}

// inTurn waits for the lock, and runs the job. It stops waiting when the tick is not open any more.
func (j *Job) inTurn(ctx context.Context, wait patience, tick time.Time, f func(context.Context) error) (ran bool, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	following, stop := context.WithCancel(waiting)
	var follower sync.WaitGroup
	follower.Go(func() {
		if j.settled(following, tick) {
			cancel(errSettled)
		}
	})
	defer follower.Wait()
	defer stop()
	err = j.mutex.Do(apart(wait.left(waiting)), func(held context.Context) error {
		stop()
		follower.Wait() // from here on it does not end held
		ran, err = j.runOpen(ctx, held, wait, tick, f)
		return err
	})
	if !ran && context.Cause(waiting) == errSettled { //nolint:errorlint // the cause itself
		return false, nil
	}
	return ran, err
}

// apart returns ctx with an owner of its own. That of ctx would enter the job's lock again while one of its functions runs.
func apart(ctx context.Context) context.Context { return queue.WithOwner(ctx) }

// errSettled ends the wait for the lock.
var errSettled = errors.New("the tick is not open any more")

// TryRun is [Job.Run] without waiting for another replica. It returns false and nil if another replica holds
// the lock, to run the job of this tick or of another. So a job that takes longer than the time between two
// ticks leaves ticks out. No replica takes over from one that dies: the tick stays open for the next call, if
// there is one.
func (j *Job) TryRun(ctx context.Context, tick time.Time, f func(context.Context) error) (ran bool, err error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.TryRun")
	wait := patienceOf(ctx)
	if open, err := j.openAtFirst(wait.left(ctx), tick, f); !open {
		return false, err
	}
	_, err = j.mutex.TryDo(apart(wait.left(ctx)), func(held context.Context) error {
		ran, err = j.runOpen(ctx, held, wait, tick, f)
		return err
	})
	return ran, err
}

// patience is how long a Run waits, in all its waits together: see [queue.WithMaxWait].
type patience struct {
	most    time.Duration
	bounded bool
	began   time.Time
}

func patienceOf(ctx context.Context) patience {
	d, bounded := queue.MaxWait(ctx)
	return patience{d, bounded, time.Now()}
}

// left returns ctx with the rest of the patience.
func (p patience) left(ctx context.Context) context.Context {
	if !p.bounded {
		return ctx
	}
	return queue.WithMaxWait(ctx, p.most-time.Since(p.began))
}

// openAtFirst checks the arguments of Run, and looks at the record before anything is written.
func (j *Job) openAtFirst(ctx context.Context, tick time.Time, f func(context.Context) error) (open bool, err error) {
	switch year := tick.UTC().Year(); {
	case f == nil:
		return false, j.failed(fmt.Errorf("%w: a nil function", session.ErrInvalid))
	case tick.IsZero() || year < 1 || year > 9999: // what JSON can say
		return false, j.failed(fmt.Errorf("%w: tick %v", session.ErrInvalid, tick))
	}
	bounded, end := queue.BeginWait(ctx)
	last, err := j.record(bounded)
	if err = end(err); err != nil {
		return false, j.failed(err)
	}
	return j.open(last.Record, tick), nil
}

// open reports whether the job of a tick may be run, by the record.
func (j *Job) open(last Record, tick time.Time) bool {
	switch c := tick.Compare(last.Tick); {
	case c != 0:
		return c > 0
	case last.Done:
		return false
	}
	return j.maxTries == 0 || last.Tries < j.maxTries
}

// runOpen runs the job if the tick is open. held is the context of a Do of the lock, which was called with ctx. The job
// gets the owner of ctx, and not that of the Do. So its context is made of ctx, and ends with held too.
func (j *Job) runOpen(ctx, held context.Context, wait patience, tick time.Time, f func(context.Context) error) (ran bool, err error) {
	lease, _ := queue.LeaseFrom(held)
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(held, func() { stop(context.Cause(held)) })()
	inside, cancel := lease.Context(within)
	defer cancel()
	bounded, end := queue.BeginWait(wait.left(inside))
	begun, open, err := j.begin(bounded, lease, tick)
	if err = end(err); !open {
		return false, j.failed(err)
	}
	if err := f(inside); err != nil {
		return true, err
	}
	if err := j.finish(inside, lease, begun); err != nil {
		return true, j.failed(fmt.Errorf("%s is done, and the record does not say so: %w", name(tick), err))
	}
	return true, nil
}

// settled waits until the record says that a tick is not open. It returns false if ctx ends before that, or
// if the record cannot be read: then the lock decides.
func (j *Job) settled(ctx context.Context, tick time.Time) bool {
	for {
		last, changed, err := j.watch(ctx)
		switch {
		case err != nil:
			return false
		case !j.open(last.Record, tick):
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func name(tick time.Time) string { return tick.UTC().Format(time.RFC3339Nano) }
