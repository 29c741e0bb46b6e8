package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// CatchUp makes up for missed ticks, and runs tick after them: it calls f for each tick behind the record, in their order,
// up to tick. next returns the tick after another one. The first tick is that of the record if it is open, and otherwise the
// next one. If nothing has been recorded yet, tick is the only one. The outcome is that of tick, as [Job.Run] returns it.
//
//	hourly := func(t time.Time) time.Time { return t.Add(time.Hour) }
//	_, err := job.CatchUp(ctx, time.Now().Truncate(time.Hour), hourly, report)
//
// CatchUp holds the job's lock from the first of these ticks to the last. So no other replica begins a later tick meanwhile,
// which would put an end to those before it: a Run waits, and a TryRun is Busy. If the lock is lost, CatchUp waits for it
// again, and goes on behind the record. A tick whose function had begun is called again then, unless it may not be
// ([WithMaxTries]). CatchUp can be called in place of Run at each tick, and by all replicas at once. Then no tick is overtaken.
//
// If another replica has begun a later tick while CatchUp waited for the lock, the ticks before it are over. So is
// one whose tries are used up: CatchUp goes on with the next. If any such tick is not done, the error is a [*SkippedError],
// which says which. The other ticks are made up for all the same.
//
// If f returns an error, CatchUp returns that error with the name of the tick, and gives the lock up. This tick and those
// after it stay open for the next CatchUp, as long as no replica begins a later one. If one does, the next CatchUp of this
// Job returns a SkippedError. So does it after any other error.
//
// Otherwise CatchUp waits and fails as Run does, for each tick. [queue.WithMaxWait] bounds what comes before the first call
// of f, and before the first one after a loss. A nil next is an error that matches [session.ErrInvalid], and so is one that
// returns no later time, or no tick.
func (j *Job) CatchUp(
	ctx context.Context, tick time.Time, next func(time.Time) time.Time, f func(ctx context.Context, tick time.Time) error,
) (Outcome, error) {
	j.made()
	misuse.Context(ctx, "schedule: Job.CatchUp")
	err := checkTick(tick)
	if next == nil || f == nil {
		err = fmt.Errorf("%w: a nil function", session.ErrInvalid)
	}
	if err != nil {
		return j.told(ctx, tick, NotRun, j.failed(err))
	}
	c := &catchUp{Job: j, tick: tick, next: next, f: f, seen: j.owed()}
	outcome, err := c.run(ctx)
	j.owe(err, c.seen)
	if c.skipped.Ticks > 0 {
		c.skipped.Path, c.skipped.Err = j.path, err
		err = &c.skipped
		j.tell(ctx, session.JobInfo{Tick: c.skipped.Last, Ticks: c.skipped.Ticks, Outcome: "skipped", Err: err})
	}
	return j.told(ctx, tick, outcome, err)
}

// SkippedError is returned by [Job.CatchUp] if ticks were left out for ever: a later tick has begun, and they were not done.
// It is known how many of the ticks from First to Last these are, and if it is not all of them, not which.
type SkippedError struct {
	Path        string    // of the job
	First, Last time.Time // the ticks among which they are
	Ticks       int       // how many
	Err         error     // why CatchUp went no further, or nil
}

// Error says how many ticks were left out, and why CatchUp went no further.
func (e *SkippedError) Error() string {
	text := fmt.Sprintf("schedule: %s: %d of the ticks from %s to %s are not done, and a later one has begun",
		e.Path, e.Ticks, name(e.First), name(e.Last))
	if e.Err != nil {
		text += "; " + e.Err.Error()
	}
	return text
}

// Unwrap returns why CatchUp went no further, or nil.
func (e *SkippedError) Unwrap() error { return e.Err }

// catchUp is a call of CatchUp.
type catchUp struct {
	*Job

	tick time.Time
	next func(time.Time) time.Time
	f    func(context.Context, time.Time) error

	seen    Record // the last that was looked at
	skipped SkippedError
}

// run queues for the lock and runs the ticks, again after each loss.
func (c *catchUp) run(ctx context.Context) (Outcome, error) {
	var pace rounds.Pace
	for {
		wait := patienceOf(ctx)
		bounded, end := queue.BeginWait(ctx)
		last, err := c.record(bounded)
		if err = end(err); err != nil {
			return NotRun, c.failed(err)
		}
		if _, outcome, err := c.pick(last.Record); outcome != NotRun || err != nil {
			return outcome, c.failed(err)
		}
		var lost error // of the lock
		outcome, err := c.inTurn(ctx, wait, c.tick, func(inside context.Context, lease *queue.Lease) (Outcome, error) {
			outcome, err := c.runAll(inside, wait, lease)
			if lost = lease.Err(); lost == nil && errors.Is(err, errNodeGone) {
				lost = errNodeGone // the lease does not know yet
			}
			return outcome, err
		})
		var over *settled
		switch {
		case errors.As(err, &over):
			return over.outcome, c.failed(c.look(over.last))
		case err == nil || ctx.Err() != nil || !errors.Is(lost, session.ErrLost):
			return outcome, err
		}
		if err := pace.Wait(ctx, nil); err != nil {
			return NotRun, c.failed(err)
		}
	}
}

// runAll runs one tick after the other under the lock, up to the last one or the first that fails.
func (c *catchUp) runAll(ctx context.Context, wait patience, lease *queue.Lease) (Outcome, error) {
	for {
		begun, outcome, err := c.begin(ctx, wait, lease, c.pick)
		if outcome != Ran {
			return outcome, c.failed(err)
		}
		wait = patience{} // of what comes before the first call of f
		err = c.call(ctx, lease, begun, func(ctx context.Context) error { return c.f(ctx, c.local(begun.Tick)) })
		switch {
		case begun.Tick.Equal(c.tick):
			return Ran, err
		case err != nil:
			return NotRun, fmt.Errorf("tick %s: %w", name(begun.Tick), err)
		}
	}
}

// pick returns the tick that is to be run by a record, and NotRun. If the last tick is not open, it returns what has become
// of it.
func (c *catchUp) pick(last Record) (time.Time, Outcome, error) {
	if err := c.look(last); err != nil {
		return c.tick, NotRun, err
	}
	outcome := c.standing(last, c.tick)
	switch {
	case outcome != NotRun || last.Tick.IsZero():
		return c.tick, outcome, nil
	case c.standing(last, last.Tick) == NotRun:
		return last.Tick, NotRun, nil
	}
	tick, err := c.after(last.Tick)
	if tick.After(c.tick) {
		tick = c.tick // which is not one of next
	}
	return tick, NotRun, err
}

// look compares a record with the one before, and counts the ticks between them that were not done. The record says how
// many ticks were done in all. An answer can be older than the one before it, from a server that is behind.
func (c *catchUp) look(last Record) (err error) {
	from := c.seen
	switch order := last.Tick.Compare(from.Tick); {
	case order < 0 || order == 0 && from.Done:
		return nil
	case order == 0 || from.Tick.IsZero():
		c.seen = last
		return nil
	}
	var first, latest time.Time
	ticks, tick := 0, from.Tick
	if from.Done {
		tick, err = c.after(tick)
	}
	for ; err == nil && tick.Before(last.Tick); tick, err = c.after(tick) {
		if ticks++; ticks == 1 {
			first = tick
		}
		latest = tick
	}
	if err != nil {
		return err
	}
	done := last.Completed - from.Completed
	if last.Done {
		done--
	}
	if left := ticks - max(0, done); left > 0 {
		if c.skipped.Ticks == 0 {
			c.skipped.First = first
		}
		c.skipped.Last, c.skipped.Ticks = latest, c.skipped.Ticks+left
	}
	c.seen = last
	return nil
}

// after returns the tick after another one.
func (c *catchUp) after(tick time.Time) (time.Time, error) {
	following := c.next(c.local(tick))
	if !following.After(tick) || following.Nanosecond()%int(time.Millisecond) != 0 {
		return tick, fmt.Errorf("%w: the tick after %v is %v", session.ErrInvalid, tick, following)
	}
	return following, nil
}

// local returns a tick in the time zone of the last one. The record has all ticks in UTC, and a schedule can go by another
// zone.
func (c *catchUp) local(tick time.Time) time.Time { return tick.In(c.tick.Location()) }

// owed returns the record up to which the last CatchUp of this Job has accounted for, if it has failed.
func (j *Job) owed() Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.seen
}

// owe keeps the record for the next CatchUp if this one has failed.
func (j *Job) owe(err error, seen Record) {
	if err == nil {
		seen = Record{}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = seen
}
