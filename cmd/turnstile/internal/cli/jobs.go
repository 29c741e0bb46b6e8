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
	cmd := &cobra.Command{
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
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix, err := pathArg(append(args, "/")[0])
			switch {
			case err != nil:
				return err
			case age < 0:
				return usagef("--max-age %v is negative", age)
			}
			return a.jobs(cmd.Context(), prefix, age)
		},
	}
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
	m, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	t := locks.NewTree(m, a.connection.connect)
	found, err := t.Walk(ctx, prefix, mostDirectories, locks.Holders)
	if err != nil {
		return a.plain(prefix, err)
	}
	held := map[string]bool{}
	for _, l := range found.Locks {
		held[l.Path] = len(l.Holders()) > 0
	}
	now := t.Now(ctx, prefix)
	out, bad := []jobJSON{}, false
	slices.Sort(found.Jobs)
	for _, p := range found.Jobs {
		job, err := schedule.New(m, p)
		if err != nil {
			continue // no path of a job
		}
		last, err := job.Last(ctx)
		j := jobJSON{Path: p, Tick: last.Tick, Outcome: "open", Tries: last.Tries, At: last.At, By: last.By}
		switch {
		case errors.Is(err, schedule.ErrRecord):
			j.Outcome, j.Error = "unreadable", fmt.Sprintf("%s/last: %v", p, err)
		case err != nil:
			return a.plain(p, err)
		case last.Tick.IsZero():
			continue // it has gone
		case last.Done:
			j.Outcome = "done"
		case held[p+"/lock"]:
			j.Outcome = "running"
		}
		j.Overdue = most > 0 && err == nil && now.Time.Sub(last.At) > most
		bad = bad || j.Overdue || err != nil
		out = append(out, j)
	}
	if a.json {
		err = a.printJSON(struct {
			Jobs     []jobJSON `json:"jobs"`
			Complete bool      `json:"complete"`
		}{out, found.Complete()})
	} else {
		a.printJobs(prefix, out, found, now)
	}
	if err == nil && bad {
		err = withCode(codeNo, nil)
	}
	return err
}

func (a *App) printJobs(prefix string, jobs []jobJSON, found *locks.Found, now locks.Clock) {
	t := newTable("PATH", "LAST TICK", "OUTCOME", "TRIES", "AGO", "BY")
	for _, j := range jobs {
		outcome := j.Outcome
		if j.Overdue {
			outcome += ", OVERDUE"
		}
		if j.Error != "" {
			t.row(clean(j.Path), "?", outcome)
			a.say(clean(j.Error))
			continue
		}
		t.row(clean(j.Path), j.Tick.Format(time.RFC3339), outcome, fmt.Sprint(j.Tries), now.Ago(j.At), short(j.By, 40))
	}
	if len(jobs) == 0 {
		fmt.Fprintf(a.Err, "There is no job at %s or below it, as far as it was read (%s).\n", prefix, count(found.Read, "directory", "directories"))
	} else {
		t.print(a.Out, a.room())
	}
	a.say(now.Note())
	a.printUnread(found)
}
