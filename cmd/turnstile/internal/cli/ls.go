package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// mostDirectories bounds a walk.
const mostDirectories = 50_000

func lsCommand(a *App) *cobra.Command {
	return onPrefix(&cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the locks that are in use",
		Long: `List the locks in use at PREFIX and below it, the whole tree without PREFIX: the kind, who
holds it, and how many contenders wait. QUEUED is the age of the first holder's node, by the
servers' clock. The servers do not know when it got the lock.

A directory that may not be read is named, and does not end the list. Ls costs one request
for each directory, and one for each holder, up to four a lock.`,
		Example: `  turnstile ls /prod/locks
  turnstile ls --json /prod/locks | jq -r '.locks[] | select(.waiting > 10) | .path'`,
	}, a.ls)
}

// lockJSON is one lock of "ls --json", and with all contenders that of "show --json".
type lockJSON struct {
	Path       string            `json:"path"`
	Kind       locks.Kind        `json:"kind"`
	Limit      int               `json:"limit,omitempty"`
	LimitSet   bool              `json:"limitSet,omitempty"`
	Holders    []locks.Contender `json:"holders,omitempty"`
	Holding    int               `json:"holding"`
	Waiting    int               `json:"waiting"`
	Contenders []locks.Contender `json:"contenders,omitempty"`
}

func jsonOf(l *locks.Lock) lockJSON {
	return lockJSON{Path: l.Path, Kind: l.Kind, Limit: l.Limit, LimitSet: l.LimitSet, Holding: len(l.Holders()), Waiting: l.Waiting()}
}

func (a *App) ls(ctx context.Context, prefix string) error {
	t, m, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	found, err := t.Walk(ctx, prefix, mostDirectories, locks.Holders)
	if err != nil {
		return a.plain(prefix, err)
	}
	slices.SortFunc(found.Locks, func(a, b *locks.Lock) int { return strings.Compare(a.Path, b.Path) })
	switch {
	case a.json:
		out := struct {
			Locks    []lockJSON     `json:"locks"`
			Unread   []locks.Unread `json:"unread"`
			Complete bool           `json:"complete"`
		}{[]lockJSON{}, append([]locks.Unread{}, found.Unread...), found.Complete()}
		for _, l := range found.Locks {
			j := jsonOf(l)
			j.Holders = slices.DeleteFunc(l.Holders(), func(c locks.Contender) bool { return !c.Known })
			out.Locks = append(out.Locks, j)
		}
		return a.printJSON(out)
	case len(found.Locks) == 0:
		fmt.Fprintf(a.Err, "No lock at %s or below it is in use, as far as it was read (%s).\n",
			prefix, count(found.Read-len(found.Unread), "directory", "directories"))
	default:
		now, table := t.Now(ctx, found.Locks[0].Path), newTable("PATH", "KIND", "HOLDER", "QUEUED", "WAITING")
		for _, l := range found.Locks {
			table.row(lockCells(l, now)...)
		}
		table.print(a.Out, a.room())
		a.say(now.Note())
	}
	a.printUnread(found)
	return nil
}

// say prints a remark, if there is one.
func (a *App) say(text string) {
	if text != "" {
		fmt.Fprintln(a.Err, text)
	}
}

// printUnread names the directories that were not read.
func (a *App) printUnread(found *locks.Found) {
	for _, u := range found.Unread {
		fmt.Fprintf(a.Err, "Not complete: %s could not be read: %s\n", clean(u.Path), u.Error)
	}
	if n := len(found.TooMany); n > 0 {
		fmt.Fprintf(a.Err, "Not complete: it stopped after %d directories. At least %d are left, the first is %s. A longer PREFIX reads fewer.\n",
			found.Read, n, clean(found.TooMany[0]))
	}
}

// lockCells are PATH, KIND, HOLDER, QUEUED, WAITING.
func lockCells(l *locks.Lock, now locks.Clock) []string {
	kind := l.Kind.Text()
	switch {
	case l.Kind == locks.Semaphore && l.Limit > 0:
		kind = fmt.Sprintf("semaphore %d/%d", l.Taken(), l.Limit)
	case l.Kind == locks.Curator:
		kind = fmt.Sprintf("semaphore %d (Curator)", l.Taken())
	case l.Kind == locks.RWLock:
		kind = "rwlock"
	}
	holders := l.Holders()
	who, since := "-", "-"
	if len(holders) > 0 {
		who, since = whoCell(holders[0]), now.Ago(holders[0].Since)
		if holders[0].Mode == "read" {
			who += " (reads)"
		}
		if n := len(holders) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
	}
	return []string{clean(l.Path), kind, who, since, fmt.Sprint(l.Waiting())}
}

// whoCell is the ID of a contender and its label.
func whoCell(c locks.Contender) string {
	who := short(c.Name(), 40)
	if c.ByHand {
		who = "nobody (node left by hand)"
	}
	if c.Label != "" {
		who += fmt.Sprintf(` "%s"`, short(c.Label, 30))
	}
	return who
}
