package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
)

func showCommand(a *App) *cobra.Command {
	var wide bool
	cmd := &cobra.Command{
		Use:   "show PATH",
		Short: "Show the holders of a lock and its waiters",
		Long: `Show the queue of the lock at PATH, in order: its holders and its waiters, since when, and
with which session. For a semaphore it shows the limit and the leases of each contender.

QUEUED is how long ago the contender's node was made, and SINCE is when that was, by the
servers' clock, with the zone of this machine. For a holder that is not when it got the lock:
the servers do not know. The node is older by the wait, and by all holds before if goroutines
of a process pass it on (WithLocalHandover, WithLazyRelease). A writer that goes on as a
reader gets a new node, and both begin anew.

A node that no session owns was left by hand. No client will ever delete it, and the
contenders behind it wait for ever. Show says how to delete it.

CLIENT, with --wide, is a guess from the name of the node and its data. TOKEN is the
fencing token.

With --json it prints one object:
  path, kind, limit, limitSet, holding, waiting  as "ls --json" prints them
  contenders  array, in order, of {node, path, sequence, holds, mode, leases, id,
              label, traceparent, since, session, byHand, revoked, token, client}.
              mode is read or write. revoked is true if somebody has asked the contender
              to give the lock up.`,
		Example: `  turnstile show /prod/locks/invoice-42
  turnstile show --wide /prod/locks/invoice-42
  turnstile show --json /prod/locks/invoice-42 | jq '.contenders[] | select(.holds)'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			if err != nil {
				return err
			}
			return a.show(cmd.Context(), p, wide)
		},
	}
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "also show traceparent, token and client")
	return cmd
}

func (a *App) show(ctx context.Context, p string, wide bool) error {
	t, done, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer done()
	l, err := a.readLock(ctx, t, p)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(showOf(l))
	}
	if len(l.Contenders) == 0 {
		return a.showNone(ctx, t, l)
	}
	fmt.Fprintln(a.Out, summary(l))
	fmt.Fprintln(a.Out)
	for _, line := range queueTable(l, time.Now(), wide) {
		fmt.Fprintln(a.Out, line)
	}
	for _, line := range a.remarks(l) {
		fmt.Fprintln(a.Out, line)
	}
	return nil
}

// readLock reads a lock that a user has named. If the path is that of a contender, the error names the lock.
func (a *App) readLock(ctx context.Context, t *locks.Tree, p string) (*locks.Lock, error) {
	l, err := t.Read(ctx, p, locks.All)
	if errors.Is(err, zk.ErrNoNode) {
		if dir := path.Dir(p); isContender(p) && dir != "/" {
			return nil, withCode(codeNotFound, fmt.Errorf("%s does not exist: that contender has left. The lock is %s", clean(p), clean(dir)))
		}
	}
	if err != nil {
		return nil, a.plain(clean(p), err)
	}
	if isContender(p) {
		return nil, withCode(codeUsage, fmt.Errorf("%s is the node of a contender. The lock is %s", clean(p), clean(path.Dir(p))))
	}
	return l, nil
}

// isContender reports whether a path ends with the name of a contender.
func isContender(p string) bool {
	_, ok := queue.ParseNode(path.Base(p))
	return ok
}

// showNone says what a path is that has no contenders.
func (a *App) showNone(ctx context.Context, t *locks.Tree, l *locks.Lock) error {
	if l.Kind != locks.None {
		fmt.Fprintln(a.Out, summary(l))
		return nil
	}
	if len(l.Others) == 0 {
		fmt.Fprintf(a.Out, "%s: nobody holds it, nobody waits. The directory is empty.\n", clean(l.Path))
		return nil
	}
	found, err := t.Walk(ctx, l.Path, locks.Bounds{Depth: 2, Nodes: 1000})
	if err != nil {
		return a.plain(clean(l.Path), err)
	}
	n := 0
	for _, below := range found.Locks {
		if !below.Idle() {
			n++
		}
	}
	text := fmt.Sprintf("%s is no lock: it is a directory with %s", clean(l.Path), count(len(l.Others), "child", "children"))
	switch {
	case n > 0:
		some := ""
		if len(found.TooDeep)+len(found.TooMany) > 0 {
			some = "at least "
		}
		text += fmt.Sprintf(" and %s%s below it: %s", some, count(n, "lock in use", "locks in use"), a.again("ls", l.Path))
	default:
		text += ": " + a.again("ls", "--all", l.Path)
	}
	fmt.Fprintln(a.Out, text)
	return nil
}

// summary is a line about a lock.
func summary(l *locks.Lock) string {
	text := clean(l.Path) + ": " + kindText(l.Kind)
	switch l.Kind {
	case locks.Semaphore, locks.Kazoo:
		limit := "of an unknown number of"
		if l.Limit > 0 {
			limit = fmt.Sprintf("of %d", l.Limit)
		}
		text += fmt.Sprintf(", %d %s leases taken", l.Taken(), limit)
		if l.LimitSet {
			text += " (an operator has set the limit)"
		}
	case locks.Curator:
		text += fmt.Sprintf(", %s taken; the limit is not on the servers", count(l.Taken(), "lease", "leases"))
	case locks.Conflict:
		return text + fmt.Sprintf(", %s of several kinds of lock. New ones fail until one kind is gone.", count(len(l.Contenders), "contender", "contenders"))
	}
	return text + fmt.Sprintf(", %s, %s", count(len(l.Holders()), "holder", "holders"), count(l.Waiting(), "waiter", "waiters"))
}

// hasLeases reports whether a kind is a semaphore.
func hasLeases(k locks.Kind) bool {
	return k == locks.Semaphore || k == locks.Curator || k == locks.Kazoo
}

func kindText(k locks.Kind) string {
	switch k {
	case locks.RWLock:
		return "read-write lock"
	case locks.Curator:
		return "semaphore in Curator's layout"
	case locks.Kazoo:
		return "semaphore of kazoo"
	case locks.Conflict:
		return "CONFLICT"
	}
	return string(k)
}

// queueTable lists the contenders.
func queueTable(l *locks.Lock, now time.Time, wide bool) []string {
	headings := []string{"#", "STATE"}
	modes, leases, labels := l.Kind == locks.RWLock, hasLeases(l.Kind), false
	for _, c := range l.Contenders {
		labels = labels || c.Label != ""
	}
	headings = add(headings, modes, "MODE")
	headings = add(headings, leases, "LEASES")
	headings = append(headings, "QUEUED", "SINCE", "WHO")
	headings = add(headings, labels, "LABEL")
	headings = append(headings, "SESSION")
	headings = add(headings, wide, "CLIENT", "TOKEN", "TRACEPARENT")
	headings = append(headings, "NODE")
	t := newTable(headings...)
	for i, c := range l.Contenders {
		cells := []string{fmt.Sprint(i + 1), state(l, c)}
		cells = add(cells, modes, c.Mode)
		cells = add(cells, leases, fmt.Sprint(c.Leases))
		cells = append(cells, ago(c.Since, now), stamp(c.Since), whoOf(c))
		cells = add(cells, labels, short(c.Label, 40))
		cells = append(cells, sessionCell(c))
		cells = add(cells, wide, dash(c.Client), fmt.Sprint(c.Token), dash(short(c.Traceparent, 60)))
		t.row(append(cells, clean(c.Node))...)
	}
	return t.lines()
}

func add(cells []string, cond bool, more ...string) []string {
	if cond {
		return append(cells, more...)
	}
	return cells
}

func state(l *locks.Lock, c locks.Contender) string {
	switch {
	case l.Kind == locks.Conflict:
		return "?"
	case c.Holds:
		return "holds"
	}
	return "waits"
}

func whoOf(c locks.Contender) string {
	switch {
	case !c.Known:
		return "? (no right to read)"
	case c.ID == "" && c.ByHand:
		return "nobody"
	case c.ID == "" && c.Revoked:
		return "? (asked to give up)"
	case c.ID == "":
		return "-"
	}
	return short(c.ID, 40)
}

func sessionCell(c locks.Contender) string {
	if c.ByHand {
		return "none!"
	}
	return dash(c.Session)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// remarks are lines below the table about contenders that need a word.
func (a *App) remarks(l *locks.Lock) []string {
	var out []string
	for i, c := range l.Contenders {
		switch {
		case c.ByHand:
			out = append(out, "", fmt.Sprintf("Line %d: no session owns this node. It was left by hand, and no client will ever delete it.", i+1),
				"To delete it: "+a.again("break", "--force", "--node", c.Node, l.Path))
		case c.Revoked:
			out = append(out, "", fmt.Sprintf("Line %d: somebody has asked this contender to give the lock up, which replaces its name.", i+1))
		}
	}
	return out
}

// shellWord quotes a word for a shell, if it needs that.
func shellWord(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+=-,", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(clean(s), "'", `'\''`) + "'"
}

// showJSON is the output of "show --json".
type showJSON struct {
	Path       string            `json:"path"`
	Kind       locks.Kind        `json:"kind"`
	Limit      int               `json:"limit,omitempty"`
	LimitSet   bool              `json:"limitSet,omitempty"`
	Holding    int               `json:"holding"`
	Waiting    int               `json:"waiting"`
	Contenders []locks.Contender `json:"contenders"`
}

func showOf(l *locks.Lock) showJSON {
	return showJSON{l.Path, l.Kind, l.Limit, l.LimitSet, len(l.Holders()), l.Waiting(), append([]locks.Contender{}, l.Contenders...)}
}
