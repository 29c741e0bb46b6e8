//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
)

const day = 24 * time.Hour

// tickOf returns the tick that --once names, and the time between two ticks if that is known.
func tickOf(text string, now time.Time) (tick time.Time, period time.Duration, err error) {
	if text == "today" {
		text = now.Format(time.DateOnly)
	}
	if date, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return date.UTC(), day, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		if tick, err = time.Parse(time.RFC3339, text); err != nil {
			return tick, 0, usagef("--once %q: want today, a date such as 2026-11-26, a duration such as 1h, or a time such as 2026-11-26T12:00:00Z", text)
		}
		return tick.UTC(), 0, nil
	case d <= 0:
		return tick, 0, usagef("--once %s: the duration is not positive", text)
	case day%d != 0:
		return tick, 0, usagef("--once %s: it does not divide the day, so its ticks are not those of a schedule, which begins anew each hour or day. Want a duration that does, --once today, or the time on the schedule", text)
	}
	return now.Truncate(d).UTC(), d, nil
}

// changesClocks reports whether a zone has summer time.
func changesClocks(now time.Time) bool {
	_, offset := now.Zone()
	for month := range 12 {
		if _, other := now.AddDate(0, month, 0).Zone(); other != offset {
			return true
		}
	}
	return false
}

// runOnce calls work with the lease of the job, if the tick is open. limited is ctx with the bound of --wait.
func (a *App) runOnce(ctx, limited context.Context, m *session.Manager, f runFlags, path string, work func(*queue.Lease) error) error {
	if _, err := time.ParseDuration(f.once); err == nil && f.period > time.Hour && changesClocks(time.Now()) {
		a.log.Warn("ticks of "+f.once+" are those of UTC, and the clocks of this zone change: a schedule in local time leaves a tick out then. --once today names the local day", "tick", f.tick)
	}
	var opts []schedule.Option
	if f.tries > 0 {
		opts = append(opts, schedule.WithMaxTries(f.tries))
	}
	job, err := schedule.New(m, path, opts...)
	if err != nil {
		return err
	}
	run := job.Run
	if f.wait == 0 {
		run = job.TryRun
	}
	var worked error
	got, err := run(limited, f.tick, func(held context.Context) error {
		lease, _ := queue.LeaseFrom(held)
		worked = work(lease)
		return worked
	})
	switch {
	case got == schedule.NotRun && errors.Is(err, queue.ErrRevoked):
		return withCode(codeLost, fmt.Errorf("%s: another client has asked for the lock, and the command was not started", path))
	case worked != nil:
		return worked // as without --once
	case got == schedule.Ran:
		return err
	case errors.Is(err, schedule.ErrRecord):
		return fmt.Errorf("%s/last: %w", path, err)
	case err != nil:
		return a.notAcquired(ctx, m, f, path, err)
	}
	return a.notRun(ctx, m, f, job, got)
}

// notRun says why the command was not run. The status is 0 if the tick is done, or another machine is at it.
func (a *App) notRun(ctx context.Context, m *session.Manager, f runFlags, job *schedule.Job, got schedule.Outcome) error {
	limited, cancel := context.WithTimeout(ctx, a.connection.Connect)
	defer cancel()
	last, err := job.Last(limited)
	switch {
	case got == schedule.Busy && (err != nil || last.Tick.Before(f.tick)): // it runs another tick
		return a.busy(ctx, m, job.Path()+"/lock", queue.ErrBusy)
	case err != nil:
		return fmt.Errorf("the tick %s was not run, and its record cannot be read: %w", f.tick.Format(time.RFC3339), err)
	}
	now := locks.NewTree(m).Now(limited, job.Path())
	tick, latest, age := f.tick.Format(time.RFC3339), last.Tick.Format(time.RFC3339), now.Ago(last.At)
	switch {
	case got == schedule.Overtaken:
		err = fmt.Errorf("the tick %s was left out: %s has begun since, %s ago", tick, latest, age)
	case got == schedule.Done && f.period > 0 && now.Time.Sub(last.At) > f.period/2:
		err = fmt.Errorf("the tick %s was done %s ago, by %s, and nothing was run now: when clocks change, two local days can have one tick of %s. --once today names the local day", tick, age, last.By, f.once)
	case got == schedule.TriesUsedUp && f.tries > 1:
		err = fmt.Errorf("the tick %s was tried %d times, the last time %s ago by %s, and is not done", tick, last.Tries, age, last.By)
	default:
		a.log.Info("not run", "outcome", got, "tick", tick, "last", latest, "tries", last.Tries, "done", last.Done, "by", last.By, "ago", age)
		return nil
	}
	return withCode(codeSkipped, err)
}
