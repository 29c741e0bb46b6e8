package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
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
		Long: `Show the queue of the lock at PATH, in order: its holders and its waiters, and with which
session they contend. QUEUED is the age of a contender's node, by the servers' clock. For a
holder that is not since it got the lock: the servers do not know.

--wide adds SINCE, when the node was made; CLIENT, a guess from the name of the node and its
data; TOKEN, the fencing token; TRACEPARENT; and NODE, the name.`,
		Example: `  turnstile show --wide /prod/locks/invoice-42
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
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "show more columns")
	return cmd
}

func (a *App) show(ctx context.Context, p string, wide bool) error {
	t, l, done, err := a.readLock(ctx, p)
	if err != nil {
		return err
	}
	defer done()
	if a.json {
		j := jsonOf(l)
		j.Contenders = l.Contenders
		return a.printJSON(j)
	}
	fmt.Fprintln(a.Out, a.summary(l))
	if len(l.Contenders) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	now := t.Now(ctx, p)
	queueTable(l, now, wide).print(a.Out, a.room())
	for i, c := range l.Contenders {
		switch {
		case c.ByHand:
			fmt.Fprintf(a.Out, "\nLine %d: no session owns this node. It was left by hand, and no client will ever delete it.\nTo delete it: %s\n",
				i+1, a.again("break", "--force", "--node", c.Node, l.Path))
		case c.Revoked:
			fmt.Fprintf(a.Out, "\nLine %d: somebody has asked this contender to give the lock up, which replaces its name.\n", i+1)
		}
	}
	a.say(now.Note())
	return nil
}

// readLock connects, and reads a lock that a user has named. If the path is that of a contender, the error names the lock.
// done ends the connection, and is nil if there is an error.
func (a *App) readLock(ctx context.Context, p string) (t *locks.Tree, l *locks.Lock, done func(), err error) {
	t, end, err := a.tree(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	l, err = t.Read(ctx, p, locks.All)
	dir := path.Dir(p)
	_, contends := queue.ParseNode(path.Base(p))
	switch {
	case errors.Is(err, zk.ErrNoNode) && contends && dir != "/":
		return nil, nil, nil, withCode(codeNotFound, fmt.Errorf("%s does not exist: that contender has left. The lock is %s", clean(p), clean(dir)))
	case err != nil:
		return nil, nil, nil, a.plain(clean(p), err)
	case contends:
		return nil, nil, nil, usagef("%s is the node of a contender. The lock is %s", clean(p), clean(dir))
	}
	return t, l, end, nil
}

// summary is a line about a lock.
func (a *App) summary(l *locks.Lock) string {
	text := clean(l.Path) + ": " + l.Kind.Text()
	switch {
	case l.Kind == locks.None && len(l.Others) == 0:
		return text + "nobody holds it, nobody waits. The directory is empty"
	case l.Kind == locks.None:
		return fmt.Sprintf("%s is no lock: it is a directory with %s: %s", clean(l.Path), count(len(l.Others), "child", "children"), a.again("ls", l.Path))
	case l.Kind == locks.Conflict:
		return text + fmt.Sprintf(", %s of several kinds of lock. New ones fail until one kind is gone", count(len(l.Contenders), "contender", "contenders"))
	case l.Kind == locks.Semaphore && l.Limit > 0:
		text += fmt.Sprintf(", %d of %d leases taken", l.Taken(), l.Limit)
	case l.Kind == locks.Semaphore || l.Kind == locks.Curator:
		text += fmt.Sprintf(", %s taken; the limit is not on the servers", count(l.Taken(), "lease", "leases"))
	}
	if l.LimitSet {
		text += " (an operator has set the limit)"
	}
	return text + fmt.Sprintf(", %s, %s", count(len(l.Holders()), "holder", "holders"), count(l.Waiting(), "waiter", "waiters"))
}

// queueTable lists the contenders.
func queueTable(l *locks.Lock, now locks.Clock, wide bool) *table {
	labels := false
	for _, c := range l.Contenders {
		labels = labels || c.Label != ""
	}
	t := newTable()
	t.rows = nil
	for i := -1; i < len(l.Contenders); i++ {
		var row []string
		add := func(shown bool, heading string, cell func(c locks.Contender) string) {
			switch {
			case shown && i < 0:
				if heading == "WHO" {
					t.flexible = len(row)
				}
				row = append(row, heading)
			case shown:
				row = append(row, cell(l.Contenders[i]))
			}
		}
		add(true, "#", func(locks.Contender) string { return fmt.Sprint(i + 1) })
		add(true, "STATE", func(c locks.Contender) string { return state(l, c) })
		add(l.Kind == locks.RWLock, "MODE", func(c locks.Contender) string { return c.Mode })
		add(l.Kind == locks.Semaphore || l.Kind == locks.Curator, "LEASES", func(c locks.Contender) string { return fmt.Sprint(c.Leases) })
		add(true, "QUEUED", func(c locks.Contender) string { return now.Ago(c.Since) })
		add(true, "SESSION", func(c locks.Contender) string {
			if c.ByHand {
				return "none!"
			}
			return dash(c.Session)
		})
		add(true, "WHO", whoOf)
		add(labels, "LABEL", func(c locks.Contender) string { return short(c.Label, 40) })
		add(wide, "SINCE", func(c locks.Contender) string {
			if c.Since.IsZero() {
				return "?"
			}
			return c.Since.Local().Format(time.RFC3339)
		})
		add(wide, "CLIENT", func(c locks.Contender) string { return dash(c.Client) })
		add(wide, "TOKEN", func(c locks.Contender) string { return fmt.Sprint(c.Token) })
		add(wide, "TRACEPARENT", func(c locks.Contender) string { return dash(short(c.Traceparent, 60)) })
		add(wide, "NODE", func(c locks.Contender) string { return clean(c.Node) })
		t.row(row...)
	}
	return t
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
