package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

type breakFlags struct {
	node       string
	force, yes bool
	wait       time.Duration
}

func breakCommand(a *App) *cobra.Command {
	var f breakFlags
	cmd := a.onTree(&cobra.Command{
		Use:   "break PATH",
		Short: "Ask the holder of a lock to give it up, or delete its node",
		Long: `Ask the holder of the lock at PATH to give it up, and wait until it has. Holders that use
turnstile hear that, and those of Curator that were made with makeRevocable.

With --force, break shows the holder, and deletes its node if you type yes. The next contender gets
the lock at once, while the former holder may still be at work. If you can, end its process instead:
then its session ends, and the servers delete the node.

A lock with several holders, such as a semaphore, needs --node, and so does a waiter.`,
		Example: `  turnstile break --force --node lock-0000000007 /prod/locks/invoice-42`,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case f.yes && !f.force:
				return usagef("--yes is for --force: without it nothing is asked")
			case f.wait <= 0:
				return usagef("--wait %v is not positive", f.wait)
			}
			return nil
		},
	}, false, func(ctx context.Context, t *locks.Tree, p string) error { return a.breakLock(ctx, t, p, f) })
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "break this contender: the name of its `node`, as show --wide prints it")
	flags.BoolVar(&f.force, "force", false, "delete the node, after a question")
	flags.BoolVarP(&f.yes, "yes", "y", false, "with --force: do not ask")
	flags.DurationVar(&f.wait, "wait", 30*time.Second, "how long to wait until the holder has given the lock up")
	return cmd
}

func (a *App) breakLock(ctx context.Context, t *locks.Tree, p string, f breakFlags) error {
	l, err := readLock(ctx, t, p)
	if err != nil {
		return err
	}
	c, err := choose(l, f.node)
	if err != nil {
		return err
	}
	if f.force {
		err = a.force(ctx, t, l, c, f)
	} else {
		err = a.ask(ctx, t, l, c, f)
	}
	if err != nil {
		return err
	}
	next, err := t.Read(ctx, p)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		a.print("Nobody holds %s now, and nobody waits.", clean(p))
	case err != nil:
		return err
	case len(next.Holders()) == 0:
		a.print("Nobody holds %s now, and %s.", clean(p), waiting(next.Waiting(), ""))
	default:
		a.print("Now %s holds %s, and %s.", holderText(next), clean(p), waiting(next.Waiting(), ""))
	}
	return nil
}

func (a *App) print(format string, args ...any) { fmt.Fprintf(a.Out, format+"\n", args...) }

// choose returns the contender to break.
func choose(l *locks.Lock, node string) (c locks.Contender, err error) {
	all, several := l.Holders(), ""
	switch {
	case node != "":
		all = slices.DeleteFunc(slices.Clone(l.Contenders), func(c locks.Contender) bool { return node != c.Node() && node != c.Path })
		if len(all) == 0 {
			return c, withCode(codeNotFound, fmt.Errorf("%s has no contender %s. It may have left", clean(l.Path), clean(path.Base(node))))
		}
	case l.Kind == locks.Conflict:
		all, several = l.Contenders, "contenders of several kinds of lock, so that nobody can say which one holds it"
	case len(all) == 0:
		return c, withCode(codeNo, fmt.Errorf("nobody holds %s", clean(l.Path)))
	case len(all) > 1:
		several = fmt.Sprint(len(all), " holders")
	}
	if several != "" {
		text := fmt.Sprintf("%s has %s. Name one, as show --wide prints it:", clean(l.Path), several)
		const most = 20
		for _, c := range all[:min(most, len(all))] {
			text += fmt.Sprintf("\n  --node %s  %s", shellWord(c.Node()), whoCell(c))
		}
		return c, usagef("%s", text)
	}
	return all[0], nil
}

// ask sends the message of revocation, and waits. The message takes the place of the node's data, in which the contender's name
// is. If it was sent in vain, ask writes the data back, also if a signal has ended the wait, and its guard does if it is killed.
func (a *App) ask(ctx context.Context, t *locks.Tree, l *locks.Lock, c locks.Contender, f breakFlags) error {
	a.introduce(ctx, t, l, c)
	if why := deaf(c); why != "" {
		return withCode(codeFailed, fmt.Errorf("%s. --force deletes the node", why))
	}
	limited, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	defer a.keepName(c)()
	begun, err := time.Now(), t.Ask(limited, c)
	asked := err == nil
	if asked {
		a.print("Asked to give the lock up. Waiting for %s at most.", locks.Span(f.wait))
		err = t.WaitGone(limited, c)
	}
	if err == nil || errors.Is(err, locks.ErrGone) || errors.Is(err, locks.ErrReplaced) {
		a.print("%s is gone after %.1fs: it has given the lock up, or its session has ended.", whoCell(c), time.Since(begun).Seconds())
		return nil
	}
	after, stop := context.WithTimeout(context.WithoutCancel(ctx), a.connection.Connect)
	defer stop()
	if err := t.Restore(after, c); err != nil && !errors.Is(err, zk.ErrNoAuth) { // without the right, it has not asked
		a.log.Warn("the name of the contender may be lost", "err", err)
	}
	switch {
	case ctx.Err() != nil || limited.Err() == nil:
		return refused(c.Path, "the rights READ and WRITE", err)
	case !asked:
		return withCode(codeConnect, errors.New("no server has confirmed the request in time"))
	}
	does := map[bool]string{true: "holds", false: "waits for"}[c.Holder]
	return withCode(codeBusy, fmt.Errorf("%s still %s %s after %s. It may not listen, or hang. --force deletes its node",
		whoCell(c), does, clean(l.Path), locks.Span(f.wait)))
}

// force deletes the node, after a question. If the contender has got the lock meanwhile, nothing is deleted: the operator
// has agreed to break a waiter.
func (a *App) force(ctx context.Context, t *locks.Tree, l *locks.Lock, c locks.Contender, f breakFlags) error {
	a.introduce(ctx, t, l, c)
	a.print("  %s", strings.ReplaceAll(consequence(l.Kind, c), "\n", "\n  "))
	if !f.yes {
		if err := a.confirm(ctx); err != nil {
			return err
		}
	}
	now, err := t.Read(ctx, l.Path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
	case err != nil:
		return err
	case !c.Holder && slices.ContainsFunc(now.Holders(), func(n locks.Contender) bool { return n.Path == c.Path && n.Token == c.Token }):
		return withCode(codeNo, fmt.Errorf("%s has got the lock meanwhile. Nothing was deleted", whoCell(c)))
	}
	switch err := t.Delete(ctx, c); {
	case err == nil:
		a.print("Deleted %s.", clean(c.Path))
	case errors.Is(err, locks.ErrGone):
		a.print("%s has left by itself.", whoCell(c))
	case errors.Is(err, locks.ErrUnclear):
		a.print("%s is gone: it was deleted, or %s left at the same moment.", clean(c.Path), whoCell(c))
	case errors.Is(err, locks.ErrReplaced):
		return withCode(codeNo, fmt.Errorf("%s: %w. It was not deleted", clean(c.Path), err))
	default:
		return refused(path.Dir(c.Path), "the right DELETE", err)
	}
	return nil
}

func (a *App) confirm(ctx context.Context) error {
	fmt.Fprint(a.Err, "Delete the node? Type yes: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		if text == "yes" || text == "y" {
			return nil
		}
		return withCode(codeNo, errors.New("not confirmed. Nothing was deleted"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// introduce says all that is known of a contender, in a few lines.
func (a *App) introduce(ctx context.Context, t *locks.Tree, l *locks.Lock, c locks.Contender) {
	name, origin := whoCell(c), "session "+c.SessionText()
	switch {
	case c.ByHand():
		name, origin = "A node that was left by hand", "no session owns it"
	case c.ID == "":
		name = "A contender without a name"
	}
	does := map[string]string{"holds": "holds", "waits": "waits for", "?": "contends for"}[state(l, c)]
	others := l.Waiting()
	if !c.Holder {
		others--
	}
	a.print("%s %s %s.\n  queued %s ago, %s, %s\n  node %s",
		name, does, clean(l.Path), t.Now(ctx, l.Path).Ago(c.Since), origin, waiting(others, "other "), clean(c.Path))
}

// deaf returns why a contender cannot hear the message of revocation, or "".
func deaf(c locks.Contender) string {
	switch client := c.Client(); {
	case c.ByHand():
		return fmt.Sprintf("no session owns the node %s, so that nobody can give it up", clean(c.Node()))
	case client != "" && client != locks.ClientOurs: // others find the leader of a latch by the data of its node
		return fmt.Sprintf("%s uses %s, which does not listen to requests", whoCell(c), client)
	}
	return ""
}

// consequence says what a contender whose node is deleted will notice, and when.
func consequence(kind locks.Kind, c locks.Contender) string {
	const ours = `It uses the Go library turnstile.
If it is connected, its watch tells it within a moment: Done, Err and its contexts
report the loss. If it is cut off or stopped, its lease clock tells it when it looks, at
the latest when its session timeout (10s by default) is over. Until then it may be at work.`
	switch client := c.Client(); {
	case c.ByHand():
		return "No client owns the node: deleting it takes the lock from nobody."
	case !c.Holder && kind != locks.Conflict:
		return "It waits, and loses its place in the queue.\nClients of this module join the queue again at its end."
	case client == locks.ClientOurs:
		return ours
	default:
		return "It uses " + cmp.Or(client, "another library, such as Apache Curator") + `. Nothing tells it. It goes on with its work
beside the next holder, so stop its process first if you can.`
	}
}
