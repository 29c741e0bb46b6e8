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
// The [Outcome] is Ran if Run has called f, and otherwise says why it has not.
//
// If another replica holds the lock, Run waits, so that it runs the job if that replica fails or dies. It
// returns Done, Overtaken or TriesUsedUp, and nil, as soon as the record says that the tick is not open any
// more. With WithMaxTries(1) that is when the other replica has begun. So the deadline of ctx is the time at
// which the tick is not worth running any more, for example the next tick. [queue.WithMaxWait] bounds what
// comes before f, all together: the waits for the record and for the lock. [Job.TryRun] does not wait for
// another replica.
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
// [zklock.Mutex.Lock], [ErrRecord], and what the servers refuse. The outcome is NotRun then: f was not called, and the
// error matches ctx.Err() if ctx has ended.
//
// An owner ([queue.WithOwner]) does not enter the lock of a job again. So a Run that f calls of the same job waits
// until its context ends.
//
// A nil f and a bad tick are errors that match [session.ErrInvalid], before anything is sent. A tick is a
// time of the years 1 to 9999 that is not the zero time. It is one tick in every time zone. It is a whole number of
// milliseconds, which time.Now() is not, and it lies at most a minute ahead by the clock of this process.
//
// A Run that does not run the job costs one read, or, if it comes while another replica is at it, a place in
// the queue of the lock, and two or three reads. One that does costs two writes more than the lock.
func (j *Job) Run(ctx context.Context, tick time.Time, f func(context.Context) error) (Outcome, error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.Run")
	outcome, err := j.run(ctx, tick, f)
	return j.told(ctx, tick, outcome, err)
}

func (j *Job) run(ctx context.Context, tick time.Time, f func(context.Context) error) (Outcome, error) {
	wait := patienceOf(ctx)
	if outcome, err := j.firstLook(wait.left(ctx), tick, f); outcome != NotRun || err != nil {
		return outcome, err
	}
	var pace rounds.Pace
	for {
		outcome, err := j.inTurn(ctx, wait, tick, func(inside context.Context, lease *queue.Lease) (Outcome, error) {
			return j.runOpen(inside, wait, lease, tick, f)
		})
		var over *settled
		switch {
		case errors.As(err, &over):
			return over.outcome, nil
		case outcome == Ran || !errors.Is(err, session.ErrLost) || ctx.Err() != nil:
			return outcome, err
		}
		// The lock was lost before f was called. To the caller that is a part of the wait.
		bounded, end := queue.BeginWait(wait.left(ctx))
		if err := end(pace.Wait(bounded, nil)); err != nil {
			return NotRun, j.failed(err)
		}
	}
}

// inTurn waits for the lock, and calls work. It stops waiting when the tick is not open any more, and the error is a settled
// one then. The context of work is made of ctx, since work gets the owner of ctx and not that of the Do, and ends with the
// lock.
func (j *Job) inTurn(
	ctx context.Context, wait patience, tick time.Time, work func(context.Context, *queue.Lease) (Outcome, error),
) (outcome Outcome, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	following, stop := context.WithCancel(waiting)
	var follower sync.WaitGroup
	follower.Go(func() {
		if over := j.follow(following, tick); over != nil {
			cancel(over)
		}
	})
	defer follower.Wait()
	defer stop()
	err = j.mutex.Do(apart(wait.left(waiting)), func(held context.Context) error {
		stop()
		follower.Wait() // from here on it does not end held
		outcome, err = j.underLock(ctx, held, work)
		return err
	})
	var over *settled
	if outcome == NotRun && errors.As(context.Cause(waiting), &over) {
		return NotRun, over
	}
	return outcome, err
}

// underLock calls work with the lock of a Do that was called with ctx, and whose context is held.
func (j *Job) underLock(
	ctx, held context.Context, work func(context.Context, *queue.Lease) (Outcome, error),
) (Outcome, error) {
	lease, _ := queue.LeaseFrom(held)
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(held, func() { stop(context.Cause(held)) })()
	inside, cancel := lease.Context(within)
	defer cancel()
	return work(inside, lease)
}

// apart returns ctx with an owner of its own. That of ctx would enter the job's lock again while one of its functions runs.
func apart(ctx context.Context) context.Context { return queue.WithOwner(ctx) }

// settled ends the wait for the lock: the tick is not open any more, by a record.
type settled struct {
	outcome Outcome
	last    Record
}

func (s *settled) Error() string { return "the tick is not open any more" }

// ErrorType is for package otelzk, which does not count the acquisition as one that was cancelled.
func (s *settled) ErrorType() string { return "settled" }

// TryRun is [Job.Run] without waiting for another replica. It returns Busy and nil if another replica holds
// the lock, to run the job of this tick or of another. So a job that takes longer than the time between two
// ticks leaves ticks out. No replica takes over from one that dies: the tick stays open for the next call, if
// there is one.
func (j *Job) TryRun(ctx context.Context, tick time.Time, f func(context.Context) error) (Outcome, error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.TryRun")
	outcome, err := j.tryRun(ctx, tick, f)
	return j.told(ctx, tick, outcome, err)
}

func (j *Job) tryRun(ctx context.Context, tick time.Time, f func(context.Context) error) (outcome Outcome, err error) {
	wait := patienceOf(ctx)
	if outcome, err := j.firstLook(wait.left(ctx), tick, f); outcome != NotRun || err != nil {
		return outcome, err
	}
	locked, err := j.mutex.TryDo(apart(wait.left(ctx)), func(held context.Context) error {
		outcome, err = j.underLock(ctx, held, func(inside context.Context, lease *queue.Lease) (Outcome, error) {
			return j.runOpen(inside, wait, lease, tick, f)
		})
		return err
	})
	if !locked && err == nil {
		return Busy, nil
	}
	return outcome, err
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

// firstLook checks the arguments of Run, and looks at the record before anything is written. It returns what
// has become of the tick, and NotRun and nil if the tick is open.
func (j *Job) firstLook(ctx context.Context, tick time.Time, f func(context.Context) error) (Outcome, error) {
	err := checkTick(tick)
	if f == nil {
		err = fmt.Errorf("%w: a nil function", session.ErrInvalid)
	}
	if err != nil {
		return NotRun, j.failed(err)
	}
	bounded, end := queue.BeginWait(ctx)
	last, err := j.record(bounded)
	if err = end(err); err != nil {
		return NotRun, j.failed(err)
	}
	return j.standing(last.Record, tick), nil
}

// mostAhead is how far a tick may lie ahead. That leaves room for a timer that fires early and for clocks that differ, and
// catches the next tick in place of the present one, which would put an end to the present one.
const mostAhead = time.Minute

// checkTick refuses what cannot be a tick, or hardly is one.
func checkTick(tick time.Time) error {
	switch year := tick.UTC().Year(); {
	case tick.IsZero() || year < 1 || year > 9999: // what JSON can say
		return fmt.Errorf("%w: tick %v", session.ErrInvalid, tick)
	case tick.Nanosecond()%int(time.Millisecond) != 0: // each replica would have a tick of its own
		return fmt.Errorf("%w: tick %s is not a whole number of milliseconds: want the time on the schedule, not time.Now()",
			session.ErrInvalid, name(tick))
	case time.Until(tick) > mostAhead:
		return fmt.Errorf("%w: tick %s lies %v ahead: want the tick that is due",
			session.ErrInvalid, name(tick), time.Until(tick).Round(time.Second))
	}
	return nil
}

// runOpen runs the job if the tick is open, under the lock. ctx ends with the lock.
func (j *Job) runOpen(
	ctx context.Context, wait patience, lease *queue.Lease, tick time.Time, f func(context.Context) error,
) (Outcome, error) {
	begun, outcome, err := j.begin(ctx, wait, lease, func(last Record) (time.Time, Outcome, error) {
		return tick, j.standing(last, tick), nil
	})
	if outcome != Ran {
		return outcome, j.failed(err)
	}
	return Ran, j.call(ctx, lease, begun, f)
}

// call calls f for a tick that was begun, and writes into the record that the tick is done. It tells the hook also if f
// panics or ends its goroutine.
func (j *Job) call(ctx context.Context, lease *queue.Lease, begun entry, f func(context.Context) error) (err error) {
	err = errCut
	defer func() { j.tell(ctx, session.JobInfo{Tick: begun.Tick, Ticks: 1, Outcome: Ran.String(), Err: err}) }()
	if err = f(ctx); err != nil {
		return err
	}
	if err = j.finish(ctx, lease, begun); err != nil {
		return j.failed(fmt.Errorf("%s is done, and the record does not say so: %w", name(begun.Tick), err))
	}
	return nil
}

var errCut = errors.New("the function has panicked, or ended its goroutine")

// told tells the hook what a call has come to, and returns it. The hook was told of a function that was called: see call.
func (j *Job) told(ctx context.Context, tick time.Time, outcome Outcome, err error) (Outcome, error) {
	if outcome != Ran {
		j.tell(ctx, session.JobInfo{Tick: tick, Ticks: 1, Outcome: outcome.String(), Err: err})
	}
	return outcome, err
}

// tell completes what is told, and calls the hook.
func (j *Job) tell(ctx context.Context, info session.JobInfo) {
	if hook := j.Manager().Trace().Job; hook != nil {
		info.Name, info.Path, info.Chroot = j.name, j.path, j.Manager().Chroot()
		hook(ctx, info)
	}
}

// follow waits until the record says that a tick is not open. It returns nil if ctx ends before that, or
// if the record cannot be read: then the lock decides.
func (j *Job) follow(ctx context.Context, tick time.Time) *settled {
	for {
		last, changed, err := j.watch(ctx)
		if err != nil {
			return nil
		}
		if outcome := j.standing(last.Record, tick); outcome != NotRun {
			return &settled{outcome, last.Record}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func name(tick time.Time) string { return tick.UTC().Format(time.RFC3339Nano) }
