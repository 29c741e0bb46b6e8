package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/schedule"
)

func jobsCommand(a *App) *cobra.Command {
	var age time.Duration
	cmd := a.onTree(&cobra.Command{
		Use:   "jobs [PREFIX]",
		Short: "List the jobs of run --once and of package schedule",
		Long: `List the jobs at PREFIX and below it: those of "turnstile run --once" and of package schedule.

OUTCOME is done, running, or open if the last tick was begun and has not succeeded. TRIES is how
often it was begun, and AGO how long ago the record was written, by the servers' clock.

The status is 1 if a job is overdue (--max-age), or a record cannot be read.`,
		Example: `  turnstile jobs --max-age 26h /jobs || mail -s "a job is overdue" ops`,
		PreRunE: func(*cobra.Command, []string) error {
			if age < 0 {
				return usagef("--max-age %v is negative", age)
			}
			return nil
		},
	}, true, func(ctx context.Context, t *locks.Tree, prefix string) error { return a.jobs(ctx, t, prefix, age) })
	cmd.Flags().DurationVar(&age, "max-age", 0, "a job is overdue if its record was written longer ago")
	return cmd
}

func (a *App) jobs(ctx context.Context, t *locks.Tree, prefix string, most time.Duration) error {
	found, err := t.Walk(ctx, prefix, mostDirectories)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for _, l := range found.Locks {
		held[l.Path] = len(l.Holders()) > 0
	}
	now, table := t.Now(ctx, prefix), newTable("PATH", "LAST TICK", "OUTCOME", "TRIES", "AGO", "BY")
	bad := false
	for _, p := range found.Jobs {
		job, err := schedule.New(t.Manager, p)
		if err != nil {
			continue // no path of a job
		}
		last, err := job.Last(ctx)
		outcome := "open"
		switch {
		case errors.Is(err, schedule.ErrRecord):
			a.say("%s/last: %s", clean(p), clean(err.Error()))
			bad = true
			table.row(clean(p), "?", "unreadable")
			continue
		case err != nil:
			return a.plain(p, err)
		case last.Tick.IsZero():
			continue // it has gone
		case last.Done:
			outcome = "done"
		case held[p+"/lock"]:
			outcome = "running"
		}
		if most > 0 && now.Time.Sub(last.At) > most {
			outcome, bad = outcome+", OVERDUE", true
		}
		table.row(clean(p), last.Tick.Format(time.RFC3339), outcome, fmt.Sprint(last.Tries), now.Ago(last.At), short(last.By, 40))
	}
	if len(table.rows) == 1 {
		a.say("There is no job at %s or below it, as far as it was read (%s).", prefix, count(found.Read, "directory", "directories"))
	} else {
		table.print(a.Out, a.room())
	}
	a.remark(now, found.Unread...)
	if bad {
		return withCode(codeNo, nil)
	}
	return nil
}
