package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
)

func showCommand(a *App) *cobra.Command {
	var wide bool
	cmd := a.onTree(&cobra.Command{
		Use:   "show PATH",
		Short: "Show the holders of a lock and its waiters",
		Long: `Show the queue of the lock at PATH, in order. QUEUED is the age of a contender's node: the servers
do not know when it got the lock. --wide adds the library, as far as the node tells, the fencing
token, and the name of the node.`,
	}, false, func(ctx context.Context, t *locks.Tree, p string) error { return a.show(ctx, t, p, wide) })
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "show more columns")
	return cmd
}

func (a *App) show(ctx context.Context, t *locks.Tree, p string, wide bool) error {
	l, err := readLock(ctx, t, p)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out, a.summary(l))
	if len(l.Contenders) == 0 {
		return nil
	}
	now := t.Now(ctx, p)
	table := newTable("#", "STATE", "MODE", "LEASES", "QUEUED", "SESSION", "WHO", "LABEL", "CLIENT", "TOKEN", "NODE")
	table.flexible = 6
	var notes strings.Builder
	for i, c := range l.Contenders {
		leases, session, who := "", c.SessionText(), cmp.Or(short(c.ID, 40), "-")
		if c.Leases > 0 {
			leases = fmt.Sprint(c.Leases)
		}
		switch {
		case c.ByHand():
			session, who = "none!", cmp.Or(short(c.Name(), 40), "-")
			fmt.Fprintf(&notes, "\nLine %d: no session owns this node. It was left by hand, and no client will ever delete it.\nTo delete it: %s\n",
				i+1, a.again("break", "--force", "--node", c.Node(), l.Path))
		case c.Revoked():
			who = "? (asked to give up)"
		}
		row := []string{fmt.Sprint(i + 1), state(l, c), c.Mode, leases, now.Ago(c.Since), session, who, short(c.Label, 40)}
		if wide {
			row = append(row, cmp.Or(c.Client(), "-"), fmt.Sprint(c.Token), clean(c.Node()))
		}
		table.row(row...)
	}
	fmt.Fprintln(a.Out)
	table.print(a.Out, a.room())
	fmt.Fprint(a.Out, &notes)
	a.remark(now)
	return nil
}

// readLock reads a lock that a user has named. If the path is that of a contender, the error names the lock.
func readLock(ctx context.Context, t *locks.Tree, p string) (*locks.Lock, error) {
	l, err := t.Read(ctx, p)
	dir := path.Dir(p)
	_, contends := queue.ParseNode(path.Base(p))
	switch {
	case errors.Is(err, zk.ErrNoNode) && contends && dir != "/":
		err = withCode(codeNotFound, fmt.Errorf("%s does not exist: that contender has left. The lock is %s", clean(p), clean(dir)))
	case err == nil && contends:
		err = usagef("%s is the node of a contender. The lock is %s", clean(p), clean(dir))
	}
	return l, err
}

// summary is a line about a lock.
func (a *App) summary(l *locks.Lock) string {
	text := clean(l.Path) + ": " + string(l.Kind)
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
	case c.Holder:
		return "holds"
	}
	return "waits"
}
