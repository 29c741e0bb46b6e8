package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

// lsOptions are the flags of ls.
type lsOptions struct {
	all    bool
	bounds locks.Bounds
}

func lsCommand(a *App) *cobra.Command {
	var o lsOptions
	cmd := &cobra.Command{
		Use:     "ls [PREFIX]",
		Aliases: []string{"list"},
		Short:   "List the locks at a path and below it",
		Long: `List the locks at PREFIX and below it, the whole tree without PREFIX: the kind, who
holds it, and how many contenders wait.

QUEUED is how long ago the node of the first holder was made, by the servers' clock. The
servers do not know when it got the lock: "turnstile help show" says more. Locks that
nobody uses are left out, unless --all is given. An election looks as a mutex if all of
its candidates use Curator's LeaderSelector or kazoo's Election, whose nodes are a mutex's.

A directory that may not be read is named, and does not end the list. Nor does one whose
list of children is longer than 64 MiB. If PREFIX itself is one of the two, that is an
error.

Ls costs one request for each directory, and one for each holder, up to four a lock.
At most 32 requests are in flight at once.

With --json it prints one object:
  locks     array of {path, kind, limit, limitSet, holders, holding, waiting}. kind is
            mutex, election, rwlock, semaphore, curator-semaphore, kazoo-semaphore,
            conflict, or "" for a directory that nobody uses. holders has up to four
            holders, as "show --json" prints them. holding is how many there are.
  unread    array of {path, error}: directories that may not be read, or whose list is too long
  complete  false if some could not be read, or the list ended early at --depth or --max`,
		Example: `  turnstile ls
  turnstile ls /prod/locks
  turnstile ls --json /prod/locks | jq -r '.locks[] | select(.waiting > 10) | .path'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix, err := pathArg(append(args, "/")[0])
			if err != nil {
				return err
			}
			if err := o.bounds.Check(); err != nil {
				return usageError(err)
			}
			return a.ls(cmd.Context(), prefix, o)
		},
	}
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "also list locks that nobody uses: empty directories")
	boundFlags(cmd, &o.bounds)
	return cmd
}

// boundFlags are the flags of commands that walk.
func boundFlags(cmd *cobra.Command, b *locks.Bounds) {
	cmd.Flags().IntVar(&b.Depth, "depth", 16, "how many `levels` below the path to search")
	cmd.Flags().IntVar(&b.Nodes, "max", 50_000, "how many `directories` to read")
}

// tree connects for a command that reads. The caller must call done.
func (a *App) tree(ctx context.Context) (t *locks.Tree, done func(), err error) {
	m, err := a.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	return locks.NewTree(m, a.connection.connect), func() { _ = m.Close() }, nil
}

func (a *App) ls(ctx context.Context, prefix string, o lsOptions) error {
	t, done, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := t.Walk(ctx, prefix, o.bounds)
	if err != nil {
		return a.plain(prefix, err)
	}
	if !o.all {
		found.Locks = slices.DeleteFunc(found.Locks, (*locks.Lock).Idle)
	}
	slices.SortFunc(found.Locks, func(a, b *locks.Lock) int { return strings.Compare(a.Path, b.Path) })
	if a.JSON {
		return a.printJSON(listOf(found))
	}
	a.printList(prefix, found, o)
	return nil
}

func (a *App) printList(prefix string, found *locks.Found, o lsOptions) {
	now := time.Now()
	if len(found.Locks) > 0 {
		t := newTable("PATH", "KIND", "HOLDER", "QUEUED", "WAITING")
		for _, l := range found.Locks {
			t.row(lockCells(l, now)...)
		}
		for _, line := range t.lines() {
			fmt.Fprintln(a.Out, line)
		}
	} else if n := found.Read - len(found.Unread); !o.all {
		fmt.Fprintf(a.Err, "No lock at %s or below it is in use, as far as it was read (%s). --all lists unused ones.\n",
			prefix, count(n, "directory", "directories"))
	}
	a.printUnread(found)
	a.printBounds(found, o.bounds)
}

// printUnread names the directories that could not be read.
func (a *App) printUnread(found *locks.Found) {
	if n := len(found.Unread); n > 0 {
		fmt.Fprintf(a.Err, "The list is not complete: %s could not be read.\n", count(n, "directory", "directories"))
	}
	for _, u := range found.Unread {
		fmt.Fprintf(a.Err, "%s: %s\n", clean(u.Path), u.Error)
	}
}

// printBounds says where a walk has stopped.
func (a *App) printBounds(found *locks.Found, b locks.Bounds) {
	if n := len(found.TooDeep); n > 0 {
		fmt.Fprintf(a.Err, "The list is not complete: %s below --depth %d not read, the first is %s.\n",
			count(n, "directory", "directories"), b.Depth, clean(found.TooDeep[0]))
	}
	if n := len(found.TooMany); n > 0 {
		fmt.Fprintf(a.Err, "The list is not complete: it stopped after --max %d directories. At least %d are left, the first is %s. A longer PREFIX reads fewer.\n",
			b.Nodes, n, clean(found.TooMany[0]))
	}
}

// lockCells are PATH, KIND, HOLDER, QUEUED, WAITING.
func lockCells(l *locks.Lock, now time.Time) []string {
	holders := l.Holders()
	who, since := "-", "-"
	if len(holders) > 0 {
		who, since = whoCell(holders[0]), ago(holders[0].Since, now)
		if holders[0].Mode == "read" {
			who += " (reads)"
		}
		if n := len(holders) - 1; n > 0 {
			who += fmt.Sprintf(" and %d more", n)
		}
	}
	return []string{clean(l.Path), kindCell(l), who, since, fmt.Sprint(l.Waiting())}
}

// kindCell is the kind, with the leases of a semaphore.
func kindCell(l *locks.Lock) string {
	switch {
	case l.Kind == locks.None:
		return "unused"
	case l.Kind == locks.Semaphore && l.Limit > 0:
		return fmt.Sprintf("semaphore %d/%d", l.Taken(), l.Limit)
	case l.Kind == locks.Semaphore:
		return "semaphore ?"
	case l.Kind == locks.Curator:
		return fmt.Sprintf("semaphore %d (Curator)", l.Taken())
	case l.Kind == locks.Kazoo && l.Limit > 0:
		return fmt.Sprintf("semaphore %d/%d (kazoo)", l.Taken(), l.Limit)
	case l.Kind == locks.Kazoo:
		return fmt.Sprintf("semaphore %d (kazoo)", l.Taken())
	case l.Kind == locks.Conflict:
		return "CONFLICT"
	}
	return string(l.Kind)
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

// lockJSON is one lock of "ls --json".
type lockJSON struct {
	Path     string            `json:"path"`
	Kind     locks.Kind        `json:"kind"`
	Limit    int               `json:"limit,omitempty"`
	LimitSet bool              `json:"limitSet,omitempty"`
	Holders  []locks.Contender `json:"holders"`
	Holding  int               `json:"holding"`
	Waiting  int               `json:"waiting"`
}

// listJSON is the output of "ls --json".
type listJSON struct {
	Locks    []lockJSON     `json:"locks"`
	Unread   []locks.Unread `json:"unread"`
	Complete bool           `json:"complete"`
}

func lockOf(l *locks.Lock) lockJSON {
	j := lockJSON{Path: l.Path, Kind: l.Kind, Limit: l.Limit, LimitSet: l.LimitSet, Holders: []locks.Contender{}, Waiting: l.Waiting()}
	for _, h := range l.Holders() {
		j.Holding++
		if h.Known {
			j.Holders = append(j.Holders, h)
		}
	}
	return j
}

func listOf(found *locks.Found) listJSON {
	j := listJSON{
		Locks: []lockJSON{}, Unread: append([]locks.Unread{}, found.Unread...),
		Complete: found.Complete(),
	}
	for _, l := range found.Locks {
		j.Locks = append(j.Locks, lockOf(l))
	}
	return j
}
