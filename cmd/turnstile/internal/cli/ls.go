package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// mostDirectories bounds a walk.
const mostDirectories = 50_000

func lsCommand(a *App) *cobra.Command {
	return a.onTree(&cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the locks that are in use",
		Long: `List the locks in use at PREFIX and below it, the whole tree without PREFIX. QUEUED is the age of
the first holder's node: the servers do not know when it got the lock. Ls costs one request for
each directory, and one for each contender.`,
	}, true, a.ls)
}

func (a *App) ls(ctx context.Context, t *locks.Tree, prefix string) error {
	found, err := t.Walk(ctx, prefix, mostDirectories)
	switch {
	case err != nil:
		return err
	case len(found.Locks) == 0:
		a.say("No lock at %s or below it is in use, as far as it was read (%s).",
			prefix, count(found.Read-len(found.Unread), "directory", "directories"))
	default:
		now, table := t.Now(ctx, found.Locks[0].Path), newTable("PATH", "KIND", "HOLDER", "QUEUED", "WAITING")
		for _, l := range found.Locks {
			kind, since := string(l.Kind), "-"
			switch {
			case l.Limit > 0:
				kind = fmt.Sprintf("semaphore %d/%d", l.Taken(), l.Limit)
			case l.Kind == locks.Curator:
				kind = fmt.Sprintf("semaphore %d (Curator)", l.Taken())
			case l.Kind == locks.RWLock:
				kind = "rwlock"
			}
			if len(l.Holders()) > 0 {
				since = now.Ago(l.Holders()[0].Since)
			}
			table.row(clean(l.Path), kind, holderText(l), since, fmt.Sprint(l.Waiting()))
		}
		table.print(a.Out, a.room())
		a.remark(now)
	}
	a.remark(locks.Clock{}, found.Unread...)
	return nil
}

// say prints a remark.
func (a *App) say(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }

// remark names a difference of the clocks, and the directories that were not read.
func (a *App) remark(now locks.Clock, unread ...locks.Unread) {
	if note := now.Note(); note != "" {
		a.say("%s", note)
	}
	for _, u := range unread {
		a.say("Not complete: %s could not be read: %s", clean(u.Path), u.Error)
	}
}

// holderText is the first holder of a lock, and how many others there are.
func holderText(l *locks.Lock) string {
	holders := l.Holders()
	if len(holders) == 0 {
		return "-"
	}
	who := whoCell(holders[0])
	if holders[0].Mode == "read" {
		who += " (reads)"
	}
	if n := len(holders) - 1; n > 0 {
		who += fmt.Sprintf(" and %d more", n)
	}
	return who
}

// whoCell is the ID of a contender and its label.
func whoCell(c locks.Contender) string {
	who := short(c.Name(), 40)
	if c.ByHand() {
		who = "nobody (node left by hand)"
	}
	if c.Label != "" {
		who += fmt.Sprintf(` "%s"`, short(c.Label, 30))
	}
	return who
}
