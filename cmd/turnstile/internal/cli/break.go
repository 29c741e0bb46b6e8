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
	"github.com/turnstile-go/turnstile/zklock"
)

// breakOptions are the flags of break.
type breakOptions struct {
	node       string
	allHolders bool
	force, yes bool
	wait       time.Duration
}

func breakCommand(a *App) *cobra.Command {
	var o breakOptions
	cmd := &cobra.Command{
		Use:   "break PATH",
		Short: "Ask the holder of a lock to give it up, or delete its node",
		Long: `Ask the holder of the lock at PATH to give it up, and wait until it has. Holders that use
turnstile hear that, and those of Curator that were made with makeRevocable. What they do
then is up to them. A waiter is never asked, unless --node names it.

With --force, break deletes the holder's node instead, after you have been shown whose it
is and have typed yes. The next contender gets the lock at once. That does not stop the
former holder: it may be at work still, beside the next one. Break says what it will
notice, and when. If you can, stop its process instead: then its session ends, and the
servers delete the node.

A lock with several holders, such as a semaphore, needs --node or --all-holders.

Break deletes the node that it has shown, and never another one that has come to its place
since. If a waiter that it has shown holds the lock when you have typed yes, break shows it
again and asks again. With --yes it deletes nothing then, and ends with status 1.

If one of several nodes cannot be deleted, break goes on with the others.

With --json it prints one object:
  path    of the lock
  action  asked or deleted
  gone    true if all of the nodes are gone
  broken  array of the contenders, as "show --json" prints them. With --force each has a
          field "result":
            deleted   break has deleted the node
            left      the contender had left before
            unclear   the node is gone: it was deleted, or the contender left at the same
                      moment
            replaced  another node has come to its place, and was not deleted
            failed    the node could not be deleted
            untried   break ended before it tried`,
		Example: `  # Ask, and wait for a minute.
  turnstile break --wait 1m /prod/locks/invoice-42

  # Delete the node of the holder.
  turnstile break --force /prod/locks/invoice-42

  # Delete a node that was left by hand.
  turnstile break --force --node lock-0000000007 /prod/locks/invoice-42`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			if err != nil {
				return err
			}
			if err := o.check(a.JSON); err != nil {
				return err
			}
			return a.breakLock(cmd.Context(), p, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.node, "node", "", "break this contender, a holder or a waiter: the name of its `node`, as show prints it")
	f.BoolVar(&o.allHolders, "all-holders", false, "break all holders, if there are several")
	f.BoolVar(&o.force, "force", false, "delete the node, after a question")
	f.BoolVarP(&o.yes, "yes", "y", false, "with --force: do not ask")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "how long to wait until the holder has given the lock up")
	return cmd
}

func (o breakOptions) check(json bool) error {
	switch {
	case o.node != "" && o.allHolders:
		return usagef("--node and --all-holders contradict each other")
	case o.yes && !o.force:
		return usagef("--yes is for --force: without it nothing is asked")
	case o.force && json && !o.yes:
		return usagef("--force with --json needs --yes: there is no question")
	case o.wait <= 0:
		return usagef("--wait %v is not positive", o.wait)
	}
	return nil
}

// breakJSON is the output of "break --json".
type breakJSON struct {
	Path   string       `json:"path"`
	Action string       `json:"action"`
	Gone   bool         `json:"gone"`
	Broken []brokenJSON `json:"broken"`
}

// brokenJSON is a contender, and what break has done to its node.
type brokenJSON struct {
	locks.Contender
	Result forceResult `json:"result,omitempty"`
}

func (a *App) breakLock(ctx context.Context, p string, o breakOptions) error {
	m, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	t := locks.NewTree(m, a.connection.connect)
	l, err := a.readLock(ctx, t, p)
	if err != nil {
		return err
	}
	chosen, err := choose(l, o)
	if err != nil {
		return err
	}
	if o.force {
		return a.forceBreak(ctx, t, l, chosen, o)
	}
	a.introduceAll(l, chosen)
	err = a.askHolders(ctx, t, l, chosen, o)
	if a.JSON && (err == nil || codeOf(ctx, err) == codeBusy) {
		out := breakJSON{Path: p, Action: "asked", Gone: err == nil}
		for _, c := range chosen {
			out.Broken = append(out.Broken, brokenJSON{Contender: c})
		}
		return errors.Join(a.printJSON(out), err)
	}
	return err
}

func (a *App) introduceAll(l *locks.Lock, chosen []locks.Contender) {
	for _, c := range chosen {
		a.tell("%s", introduce(l, c, time.Now()))
	}
}

// choose returns the contenders to break.
func choose(l *locks.Lock, o breakOptions) ([]locks.Contender, error) {
	if o.node != "" {
		for _, c := range l.Contenders {
			if o.node == c.Node || o.node == c.Path {
				return readable(c)
			}
		}
		return nil, withCode(codeNotFound, fmt.Errorf("%s has no contender %s. It may have left", clean(l.Path), clean(path.Base(o.node))))
	}
	if l.Kind == locks.Conflict {
		return nil, usagef("%s has contenders of several kinds of lock, so that nobody can say which one holds it. Name one:\n%s", clean(l.Path), nodeList(l.Contenders))
	}
	holders := l.Holders()
	switch {
	case len(holders) == 0:
		return nil, withCode(codeNo, fmt.Errorf("nobody holds %s", clean(l.Path)))
	case len(holders) > 1 && !o.allHolders:
		return nil, usagef("%s has %d holders. Name one, or give --all-holders:\n%s", clean(l.Path), len(holders), nodeList(holders))
	}
	return readable(holders...)
}

// readable returns contenders whose nodes could be read. A node of which nothing is known is not broken.
func readable(all ...locks.Contender) ([]locks.Contender, error) {
	for _, c := range all {
		if !c.Known {
			return nil, withCode(codeRefused, fmt.Errorf("%s: this client has not got the right READ to the node. See --auth and --auth-file", clean(c.Path)))
		}
	}
	return all, nil
}

// nodeList lists contenders as values for --node.
func nodeList(all []locks.Contender) string {
	const most = 20
	var lines []string
	for i, c := range all {
		if i == most {
			lines = append(lines, fmt.Sprintf("  and %d more", len(all)-most))
			break
		}
		lines = append(lines, fmt.Sprintf("  --node %s  %s", shellWord(c.Node), whoCell(c)))
	}
	return strings.Join(lines, "\n")
}

// askHolders sends the message of revocation, and waits. The message takes the place of the node's data, which may be the
// address under which others find a leader. If it was sent in vain, the data comes back.
func (a *App) askHolders(ctx context.Context, t *locks.Tree, l *locks.Lock, chosen []locks.Contender, o breakOptions) (err error) {
	for _, c := range chosen {
		if why := deaf(c); why != "" {
			return withCode(codeFailed, fmt.Errorf("%s. --force deletes the node", why))
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.wait, errWaited)
	defer cancel()
	var asked []locks.Contender
	defer func() {
		if err != nil {
			a.restore(ctx, t, asked)
		}
	}()
	for _, c := range chosen {
		err := t.Ask(limited, c)
		switch {
		case err == nil:
			asked = append(asked, c)
		case errors.Is(err, locks.ErrGone), errors.Is(err, locks.ErrReplaced): // it has left
		case limited.Err() != nil && ctx.Err() == nil:
			return withCode(codeConnect, errors.New("no server has confirmed the request in time"))
		case errors.Is(err, zklock.ErrNotRevocable):
			return fmt.Errorf("%w. --force deletes the node", err)
		default:
			return a.plain(clean(c.Path), a.refused(c.Path, zk.PermRead|zk.PermWrite, err))
		}
	}
	if len(asked) > 0 {
		a.tell("Asked to give the lock up. Waiting for %s at most.", span(o.wait))
	}
	begun := time.Now()
	for _, c := range chosen {
		if err := t.WaitGone(limited, c); err != nil {
			if errors.Is(err, errWaited) || limited.Err() != nil && ctx.Err() == nil {
				return withCode(codeBusy, fmt.Errorf("%s still %s %s after %s. It may not listen, or hang. --force deletes its node",
					who(c), verb(c), clean(l.Path), span(o.wait)))
			}
			return a.plain(clean(c.Path), err)
		}
		a.tell("%s is gone after %.1fs: it has given the lock up, or its session has ended.", who(c), time.Since(begun).Seconds())
	}
	return a.tellNext(ctx, t, l.Path)
}

// restore writes the data of contenders back that were asked in vain, also when a signal has ended ctx.
func (a *App) restore(ctx context.Context, t *locks.Tree, asked []locks.Contender) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.connection.connect)
	defer cancel()
	for _, c := range asked {
		if string(c.Data) == queue.RevokeMessage {
			continue // somebody has asked it before
		}
		if err := t.Restore(ctx, c); err != nil {
			a.Log.Warn("the data of the node is not back: "+queue.RevokeMessage+" is there", "node", c.Path, "err", err)
		}
	}
}

var errWaited = errors.New("the time to wait is over")

// tell prints a line for people.
func (a *App) tell(format string, args ...any) {
	if !a.JSON {
		fmt.Fprintf(a.Out, format+"\n", args...)
	}
}

// tellNext names the next holder of the lock.
func (a *App) tellNext(ctx context.Context, t *locks.Tree, p string) error {
	l, err := t.Read(ctx, p, locks.Holders)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && len(l.Contenders) == 0:
		a.tell("Nobody holds %s now, and nobody waits.", clean(p))
		return nil
	case err != nil:
		return a.plain(clean(p), err)
	}
	if holders := l.Holders(); len(holders) == 0 {
		a.tell("Nobody holds %s now, and %s.", clean(p), waiting(l.Waiting(), ""))
	} else {
		a.tell("Now %s holds %s, and %s.", whoCell(holders[0]), clean(p), waiting(l.Waiting(), ""))
	}
	return nil
}
