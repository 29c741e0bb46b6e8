package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

func deadlocksCommand(a *App) *cobra.Command {
	var bounds locks.Bounds
	cmd := &cobra.Command{
		Use:   "deadlocks [PREFIX]",
		Short: "Find contenders that wait for each other in a circle",
		Long: `Find contenders of the locks at PREFIX and below it that wait for each other in a circle, so
that none of them can go on. It changes nothing.

Contenders belong together if they are of one session and have the same trace or label
(WithLabel). Circles of such contenders are certain. Contenders without them count as one
if they are of one session, although they may be goroutines that do not wait for each
other. Such circles are possible, and a person has to look.

All contenders are read: one request for each directory, and one for each contender. The
locks of a circle are read twice. A circle is reported if nothing has changed in between.
Semaphores in Curator's layout are left out, since the servers do not know their limit.

The exit status is 1 if there are circles. With --json it prints one object:
  circles   array of {certain, waits}. waits has {lock, waiter, behind} for each wait.
            waiter and behind are as in "show --json".
  unread    array of {path, error}: directories that could not be read
  complete  false if some were not read, or the list ended early at --depth or --max`,
		Example: `  turnstile deadlocks /prod
  turnstile deadlocks --json /prod | jq '.circles[] | select(.certain)'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix, err := pathArg(append(args, "/")[0])
			if err != nil {
				return err
			}
			if err := bounds.Check(); err != nil {
				return usageError(err)
			}
			return a.deadlocks(cmd.Context(), prefix, bounds)
		},
	}
	boundFlags(cmd, &bounds)
	return cmd
}

// deadlocksJSON is the output of "deadlocks --json".
type deadlocksJSON struct {
	Circles  []locks.Circle `json:"circles"`
	Unread   []locks.Unread `json:"unread"`
	Complete bool           `json:"complete"`
}

func (a *App) deadlocks(ctx context.Context, prefix string, b locks.Bounds) error {
	t, done, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := t.WalkAll(ctx, prefix, b)
	if err != nil {
		return a.plain(prefix, err)
	}
	circles, err := t.Confirmed(ctx, locks.Circles(found.Locks))
	if err != nil {
		return a.plain(prefix, err)
	}
	if a.JSON {
		out := deadlocksJSON{
			append([]locks.Circle{}, circles...), append([]locks.Unread{}, found.Unread...), found.Complete(),
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.printCircles(prefix, found, circles, b)
	}
	if len(circles) > 0 {
		return withCode(codeNo, nil)
	}
	return nil
}

func (a *App) printCircles(prefix string, found *locks.Found, circles []locks.Circle, b locks.Bounds) {
	now := time.Now()
	for i, c := range circles {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if c.Certain {
			fmt.Fprintln(a.Out, "These wait for each other:")
		} else {
			fmt.Fprintln(a.Out, "These may wait for each other. Their processes do not say which of their locks belong together (WithLabel):")
		}
		for _, w := range c.Waits {
			fmt.Fprintf(a.Out, "  %s waits for %s, in the queue for %s, behind %s, which %s it\n",
				party(w.Waiter), clean(w.Lock), ago(w.Waiter.Since, now), party(w.Behind), verb(w.Behind))
		}
	}
	if len(circles) == 0 {
		fmt.Fprintf(a.Out, "Nobody waits in a circle at %s or below it, as far as it was read (%s).\n",
			clean(prefix), count(found.Read-len(found.Unread), "directory", "directories"))
	}
	a.printUnread(found)
	a.printBounds(found, b)
}

// party names a contender and its session.
func party(c locks.Contender) string { return whoCell(c) + " (" + c.Session + ")" }
