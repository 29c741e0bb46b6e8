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
	cmd := onLock(&cobra.Command{
		Use:   "show PATH",
		Short: "Show the holders of a lock and its waiters",
		Long: `Show the queue of the lock at PATH, in order: its holders and its waiters, and with which
session they contend. QUEUED is the age of a contender's node, by the servers' clock. For a
holder that is not since it got the lock: the servers do not know.

--wide adds SINCE, when the node was made; CLIENT, a guess from the name of the node and its
data; TOKEN, the fencing token; TRACEPARENT; and NODE, the name.`,
		Example: `  turnstile show --wide /prod/locks/invoice-42
  turnstile show --json /prod/locks/invoice-42 | jq '.contenders[] | select(.holds)'`,
	}, func(ctx context.Context, p string) error { return a.show(ctx, p, wide) })
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
	now := t.Now(ctx, p)
	table := newTable("#", "STATE", "MODE", "LEASES", "QUEUED", "SESSION", "WHO", "LABEL", "SINCE", "CLIENT", "TOKEN", "TRACEPARENT", "NODE")
	table.flexible = 6
	var notes strings.Builder
	for i, c := range l.Contenders {
		leases, session, since := "", dash(c.Session), "?"
		if c.Leases > 0 {
			leases = fmt.Sprint(c.Leases)
		}
		if !c.Since.IsZero() {
			since = c.Since.Local().Format(time.RFC3339)
		}
		switch {
		case c.ByHand:
			session = "none!"
			fmt.Fprintf(&notes, "\nLine %d: no session owns this node. It was left by hand, and no client will ever delete it.\nTo delete it: %s\n",
				i+1, a.again("break", "--force", "--node", c.Node, l.Path))
		case c.Revoked:
			fmt.Fprintf(&notes, "\nLine %d: somebody has asked this contender to give the lock up, which replaces its name.\n", i+1)
		}
		row := []string{fmt.Sprint(i + 1), state(l, c), c.Mode, leases, now.Ago(c.Since), session, whoOf(c), short(c.Label, 40)}
		if wide {
			row = append(row, since, dash(c.Client), fmt.Sprint(c.Token), short(c.Traceparent, 60), clean(c.Node))
		}
		table.row(row...)
	}
	fmt.Fprintln(a.Out)
	table.print(a.Out, a.room())
	fmt.Fprint(a.Out, &notes)
	a.say(now.Note())
	return nil
}

// readLock connects, and reads a lock that a user has named. If the path is that of a contender, the error names the lock.
// done ends the connection, and is nil if there is an error.
func (a *App) readLock(ctx context.Context, p string) (t *locks.Tree, l *locks.Lock, done func(), err error) {
	t, m, err := a.tree(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	l, err = t.Read(ctx, p, locks.All)
	dir := path.Dir(p)
	_, contends := queue.ParseNode(path.Base(p))
	switch {
	case errors.Is(err, zk.ErrNoNode) && contends && dir != "/":
		err = withCode(codeNotFound, fmt.Errorf("%s does not exist: that contender has left. The lock is %s", clean(p), clean(dir)))
	case err == nil && contends:
		err = usagef("%s is the node of a contender. The lock is %s", clean(p), clean(dir))
	}
	if err != nil {
		_ = m.Close()
		return nil, nil, nil, a.plain(clean(p), err)
	}
	return t, l, func() { _ = m.Close() }, nil
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
