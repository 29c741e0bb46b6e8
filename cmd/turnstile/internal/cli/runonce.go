package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
)

const onceHelp = `With --once the path is a directory for a job that many machines have on the same schedule:
its lock is PATH/lock, and the record of the latest tick is PATH/last. The command runs
unless the record says that the tick is done, or that a later one has begun: then turnstile
ends with status 0, and -v says why. A tick is a name for the time on the schedule: an
RFC 3339 time such as 2026-11-26T12:00:00Z, or a duration such as 1h or 24h, to which
the present time by this machine's clock is truncated, in UTC. It lies at most a minute
ahead. If the command fails or its machine dies, the tick stays open: another turnstile
that waits runs the command, and so does a later call for the same tick. --max-tries
bounds that, and 1 is at most once. With --try, status 124 says that another machine
holds the lock and has not begun the tick.
The command's environment has TURNSTILE_TICK, the tick as an RFC 3339 time in UTC.
`

// tickOf returns the tick that --once names.
func tickOf(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if d <= 0 {
			return time.Time{}, usagef("--once %s: the duration is not positive", text)
		}
		return now.Truncate(d).UTC(), nil
	}
	tick, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return tick, usagef("--once %q: want a time such as 2026-11-26T12:00:00Z, or a duration such as 1h", text)
	}
	return tick.UTC(), nil
}

// checkOnce looks for errors of --once and --max-tries. It sets the tick.
func (f *runFlags) checkOnce() (err error) {
	switch {
	case f.triesGiven && f.once == "":
		return usagef("--max-tries needs --once")
	case f.triesGiven && f.tries < 1:
		return usagef("--max-tries %d: want 1 or more", f.tries)
	case f.once == "":
		return nil
	case f.read || f.write || f.slotsGiven:
		return usagef("--once excludes --read, --write and --slots")
	}
	f.tick, err = tickOf(f.once, time.Now())
	return err
}

// jobAt returns the job that the flags of run ask for.
func jobAt(m *session.Manager, path string, f runFlags) (*schedule.Job, error) {
	var opts []schedule.Option
	if f.triesGiven {
		opts = append(opts, schedule.WithMaxTries(f.tries))
	}
	return schedule.New(m, path, opts...)
}

// runOnce calls work with the lock of the job, if the tick is open.
func (a *App) runOnce(
	ctx context.Context, m *session.Manager, f runFlags, path string, r revocation, work func(*runLock) error,
) error {
	job, err := jobAt(m, path, f)
	if err != nil {
		return err
	}
	if f.label != "" {
		ctx = queue.WithLabel(ctx, f.label)
	}
	limited, cancel := a.bound(ctx, f)
	defer cancel()
	run := job.Run
	if f.try {
		run = job.TryRun
	}
	var worked error
	begin := func(held context.Context) error {
		lease, _ := queue.LeaseFrom(held)
		l, err := newRunLock(ctx, m, lease)
		if err == nil {
			err = work(l)
		}
		worked = err
		return err
	}
	got, err := run(limited, f.tick, begin)
	for got == schedule.NotRun && errors.Is(err, queue.ErrRevoked) && (r.ignore || r.signal != 0) {
		got, err = run(limited, f.tick, begin) // the request was for a place in the queue, which is given up
	}
	switch {
	case got == schedule.NotRun && errors.Is(err, queue.ErrRevoked):
		return withCode(codeLost, fmt.Errorf("%s: %s", path, askedBefore))
	case worked != nil:
		return worked // as without --once
	case got == schedule.Ran:
		return err
	case err != nil:
		return a.notAcquired(ctx, m, f, path, err)
	}
	return a.notRun(ctx, m, f, job, got)
}

// notRun says why the command was not run.
func (a *App) notRun(ctx context.Context, m *session.Manager, f runFlags, job *schedule.Job, got schedule.Outcome) error {
	limited, cancel := context.WithTimeout(ctx, a.connection.connect)
	defer cancel()
	last, err := job.Last(limited)
	switch {
	case got == schedule.Busy && (err != nil || last.Tick.Before(f.tick)): // it runs another tick
		return a.busy(ctx, m, job.Path()+"/lock", queue.ErrBusy)
	case err != nil:
		a.Log.Info("not run", "outcome", got, "tick", f.tick)
		return nil
	}
	a.Log.Info("not run", "outcome", got, "tick", f.tick,
		slog.Group("last", "tick", last.Tick, "tries", last.Tries, "done", last.Done, "by", last.By))
	return nil
}
