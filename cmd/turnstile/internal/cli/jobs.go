package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/schedule"
)

func jobsCommand(a *App) *cobra.Command {
	var age time.Duration
	cmd := onPrefix(&cobra.Command{
		Use:   "jobs [PREFIX]",
		Short: "List the jobs of run --once and of package schedule",
		Long: `List the jobs at PREFIX and below it: those of "turnstile run --once" and of package schedule.

OUTCOME is done, running if somebody holds the job's lock, or open if it was begun and has
not succeeded, so it may be run again. TRIES is how often the last tick was begun, and AGO is
how long ago the record was written, by the servers' clock.

With --max-age a job is overdue if its record was written longer ago than that, whatever its
outcome. The status is 1 if a job is overdue, or a record cannot be read.`,
		Example: `  turnstile jobs
  turnstile jobs --max-age 26h /jobs || mail -s "a job is overdue" ops`,
	}, func(ctx context.Context, prefix string) error {
		if age < 0 {
			return usagef("--max-age %v is negative", age)
		}
		return a.jobs(ctx, prefix, age)
	})
	cmd.Flags().DurationVar(&age, "max-age", 0, "a job is overdue if its record was written longer ago")
	return cmd
}

// jobJSON is one job of "jobs --json".
type jobJSON struct {
	Path    string    `json:"path"`
	Tick    time.Time `json:"tick,omitzero"`
	Outcome string    `json:"outcome"` // done, running, open or unreadable
	Tries   int       `json:"tries,omitempty"`
	At      time.Time `json:"at,omitzero"` // the record was written, by the servers' clock
	By      string    `json:"by,omitempty"`
	Overdue bool      `json:"overdue"`
	Error   string    `json:"error,omitempty"`
}

func (a *App) jobs(ctx context.Context, prefix string, most time.Duration) error {
	t, m, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	found, err := t.Walk(ctx, prefix, mostDirectories, locks.Holders)
	if err != nil {
		return a.plain(prefix, err)
	}
	held := map[string]bool{}
	for _, l := range found.Locks {
		held[l.Path] = len(l.Holders()) > 0
	}
	now, table := t.Now(ctx, prefix), newTable("PATH", "LAST TICK", "OUTCOME", "TRIES", "AGO", "BY")
	all, bad := []jobJSON{}, false
	slices.Sort(found.Jobs)
	for _, p := range found.Jobs {
		job, err := schedule.New(m, p)
		if err != nil {
			continue // no path of a job
		}
		last, err := job.Last(ctx)
		j := jobJSON{Path: p, Tick: last.Tick, Outcome: "open", Tries: last.Tries, At: last.At, By: last.By}
		row := []string{clean(p), last.Tick.Format(time.RFC3339), "", fmt.Sprint(last.Tries), now.Ago(last.At), short(last.By, 40)}
		switch {
		case errors.Is(err, schedule.ErrRecord):
			j.Outcome, j.Error, bad = "unreadable", fmt.Sprintf("%s/last: %v", p, err), true
			row = []string{clean(p), "?", ""}
		case err != nil:
			return a.plain(p, err)
		case last.Tick.IsZero():
			continue // it has gone
		case last.Done:
			j.Outcome = "done"
		case held[p+"/lock"]:
			j.Outcome = "running"
		}
		row[2] = j.Outcome
		if most > 0 && err == nil && now.Time.Sub(last.At) > most {
			j.Overdue, bad = true, true
			row[2] += ", OVERDUE"
		}
		all = append(all, j)
		table.row(row...)
	}
	if a.json {
		err = a.printJSON(map[string]any{"jobs": all, "complete": found.Complete()})
	} else if table.print(a.Out, a.room()); len(all) == 0 {
		fmt.Fprintf(a.Err, "There is no job at %s or below it, as far as it was read (%s).\n", prefix, count(found.Read, "directory", "directories"))
	}
	if !a.json {
		for _, j := range all {
			a.say(clean(j.Error))
		}
		a.say(now.Note())
		a.printUnread(found)
	}
	if err == nil && bad {
		err = withCode(codeNo, nil)
	}
	return err
}
