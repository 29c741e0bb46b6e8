package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/queue"
)

// breakFlags are the flags of break.
type breakFlags struct {
	node       string
	force, yes bool
	wait       time.Duration
}

func breakCommand(a *App) *cobra.Command {
	var f breakFlags
	cmd := onLock(&cobra.Command{
		Use:   "break PATH",
		Short: "Ask the holder of a lock to give it up, or delete its node",
		Long: `Ask the holder of the lock at PATH to give it up, and wait until it has. Holders that use
turnstile hear that, and those of Curator that were made with makeRevocable. What they do
then is up to them.

With --force, break deletes the holder's node instead, after you have been shown whose it
is and have typed yes. The next contender gets the lock at once. That does not stop the
former holder: it may be at work still, beside the next one. Break says what it will
notice, and when. If you can, stop its process instead: then its session ends, and the
servers delete the node.

A lock with several holders, such as a semaphore, needs --node, and so does a waiter. If a waiter
holds the lock when you have typed yes, break shows it again and asks again.

With --json it prints {path, result, contender}. result is left, stays, deleted, unclear (it
was deleted, or left at the same moment) or replaced (another node came to its place, and
was not deleted).`,
		Example: `  turnstile break --wait 1m /prod/locks/invoice-42
  turnstile break --force /prod/locks/invoice-42
  turnstile break --force --node lock-0000000007 /prod/locks/invoice-42`,
	}, func(ctx context.Context, p string) error {
		switch {
		case f.yes && !f.force:
			return usagef("--yes is for --force: without it nothing is asked")
		case f.force && a.json && !f.yes:
			return usagef("--force with --json needs --yes: there is no question")
		case f.wait <= 0:
			return usagef("--wait %v is not positive", f.wait)
		}
		return a.breakLock(ctx, p, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "break this contender: the name of its `node`, as show --wide prints it")
	flags.BoolVar(&f.force, "force", false, "delete the node, after a question")
	flags.BoolVarP(&f.yes, "yes", "y", false, "with --force: do not ask")
	flags.DurationVar(&f.wait, "wait", 30*time.Second, "how long to wait until the holder has given the lock up")
	return cmd
}

func (a *App) breakLock(ctx context.Context, p string, f breakFlags) error {
	if a.restores {
		return a.restoreAfterDeath(ctx)
	}
	t, l, done, err := a.readLock(ctx, p)
	if err != nil {
		return err
	}
	defer done()
	c, err := choose(l, f.node)
	if err != nil {
		return err
	}
	work := a.ask
	if f.force {
		work = a.force
	}
	result, err := work(ctx, t, l, &c, f)
	switch {
	case result == "":
		return err
	case a.json:
		return errors.Join(err, a.printJSON(map[string]any{"path": p, "result": result, "contender": c}))
	case result == "stays":
		return err
	}
	next, readErr := t.Read(ctx, p, locks.Holders)
	switch {
	case errors.Is(readErr, zk.ErrNoNode):
		a.tell("Nobody holds %s now, and nobody waits.", clean(p))
	case readErr != nil:
		return errors.Join(err, a.plain(clean(p), readErr))
	case len(next.Holders()) == 0:
		a.tell("Nobody holds %s now, and %s.", clean(p), waiting(next.Waiting(), ""))
	default:
		a.tell("Now %s holds %s, and %s.", whoCell(next.Holders()[0]), clean(p), waiting(next.Waiting(), ""))
	}
	return err
}

// tell prints a line for people.
func (a *App) tell(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.Out, format+"\n", args...)
	}
}

// choose returns the contender to break.
func choose(l *locks.Lock, node string) (c locks.Contender, err error) {
	all, several := l.Holders(), ""
	switch {
	case node != "":
		i := slices.IndexFunc(l.Contenders, func(c locks.Contender) bool { return node == c.Node || node == c.Path })
		if i < 0 {
			return c, withCode(codeNotFound, fmt.Errorf("%s has no contender %s. It may have left", clean(l.Path), clean(path.Base(node))))
		}
		all = l.Contenders[i : i+1]
	case l.Kind == locks.Conflict:
		all, several = l.Contenders, "contenders of several kinds of lock, so that nobody can say which one holds it"
	case len(all) == 0:
		return c, withCode(codeNo, fmt.Errorf("nobody holds %s", clean(l.Path)))
	case len(all) > 1:
		several = fmt.Sprint(len(all), " holders")
	}
	if several != "" {
		text := fmt.Sprintf("%s has %s. Name one:", clean(l.Path), several)
		const most = 20
		for _, c := range all[:min(most, len(all))] {
			text += fmt.Sprintf("\n  --node %s  %s", shellWord(c.Node), whoCell(c))
		}
		if more := len(all) - most; more > 0 {
			text += fmt.Sprintf("\n  and %d more", more)
		}
		return c, usagef("%s", text)
	}
	if !all[0].Known { // a node of which nothing is known is not broken
		return c, withCode(codeRefused, fmt.Errorf("%s: this client has not got the right READ to the node. See --auth and --auth-file", clean(all[0].Path)))
	}
	return all[0], nil
}

// ask sends the message of revocation, and waits. The message takes the place of the node's data, in which the contender's name
// is. If it was sent in vain, the data comes back, also if this process is killed.
func (a *App) ask(ctx context.Context, t *locks.Tree, l *locks.Lock, c *locks.Contender, f breakFlags) (result string, err error) {
	a.introduce(ctx, t, l, *c)
	if why := deaf(*c); why != "" {
		return "", withCode(codeFailed, fmt.Errorf("%s. --force deletes the node", why))
	}
	forget := a.restoreLater(*c)
	defer forget()
	limited, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	over := func() bool { return limited.Err() != nil && ctx.Err() == nil }
	defer func() {
		if err == nil || string(c.Data) == queue.RevokeMessage { // somebody has asked it before
			return
		}
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.connection.connect)
		defer cancel()
		if err := t.Restore(again, *c); err != nil {
			a.log.Warn("the data of the node is not back: "+queue.RevokeMessage+" is there", "node", c.Path, "err", err)
		}
	}()
	switch err := t.Ask(limited, *c); {
	case errors.Is(err, locks.ErrGone), errors.Is(err, locks.ErrReplaced): // it has left
	case err != nil && over():
		return "", withCode(codeConnect, errors.New("no server has confirmed the request in time"))
	case err != nil:
		return "", a.plain(clean(c.Path), a.refused(c.Path, zk.PermRead|zk.PermWrite, err))
	default:
		a.tell("Asked to give the lock up. Waiting for %s at most.", locks.Span(f.wait))
	}
	begun := time.Now()
	err = t.WaitGone(limited, *c)
	if err == nil {
		a.tell("%s is gone after %.1fs: it has given the lock up, or its session has ended.", whoCell(*c), time.Since(begun).Seconds())
		return "left", nil
	}
	if !over() {
		return "", a.plain(clean(c.Path), err)
	}
	does := map[bool]string{true: "holds", false: "waits for"}[c.Holds]
	return "stays", withCode(codeBusy, fmt.Errorf("%s still %s %s after %s. It may not listen, or hang. --force deletes its node",
		whoCell(*c), does, clean(l.Path), locks.Span(f.wait)))
}

// restorerName is argument 0 of a process that writes the data of a contender back if break is killed. Its other arguments are those
// of break.
const restorerName = "turnstile-break"

// asked is what such a process gets, and then a byte if it is not needed.
type asked struct {
	Path  string
	Token int64
	Data  []byte
}

// restoreLater starts a process that restores the data of a contender if this one is killed. The caller must call forget.
func (a *App) restoreLater(c locks.Contender) (forget func()) {
	program, err := os.Executable()
	cmd := &exec.Cmd{Path: program, Args: append([]string{restorerName}, a.args...), SysProcAttr: supervise.OwnGroup()}
	var in io.WriteCloser
	if err == nil {
		in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = json.NewEncoder(in).Encode(asked{c.Path, c.Token, c.Data})
	}
	if err != nil {
		a.log.Warn("if this process is killed now, the name of the contender is lost", "err", err)
		return func() {}
	}
	return func() {
		_, _ = in.Write([]byte("."))
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// restoreAfterDeath is all that the process of restoreLater does.
func (a *App) restoreAfterDeath(ctx context.Context) error {
	var what asked
	d := json.NewDecoder(a.In)
	if err := d.Decode(&what); err != nil {
		return err
	}
	rest, _ := io.ReadAll(io.MultiReader(d.Buffered(), a.In))
	if strings.Contains(string(rest), ".") {
		return nil
	}
	t, m, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	return t.Restore(ctx, locks.Contender{Path: what.Path, Token: what.Token, Data: what.Data})
}

// force deletes the node, after a question. It asks again if the contender has got the lock meanwhile: the operator has agreed to
// break a waiter.
func (a *App) force(ctx context.Context, t *locks.Tree, l *locks.Lock, c *locks.Contender, f breakFlags) (string, error) {
	in := bufio.NewReader(a.In)
	for {
		a.introduce(ctx, t, l, *c)
		a.tell("  %s", strings.ReplaceAll(consequence(l.Kind, *c), "\n", "\n  "))
		if !f.yes {
			if err := a.confirm(ctx, in); err != nil {
				return "", err
			}
		}
		now, err := t.Read(ctx, l.Path, locks.All)
		if errors.Is(err, zk.ErrNoNode) {
			break
		}
		if err != nil {
			return "", a.plain(clean(l.Path), err)
		}
		i := slices.IndexFunc(now.Contenders, func(n locks.Contender) bool { return n.Path == c.Path && n.Token == c.Token })
		if i < 0 || c.Holds || !now.Contenders[i].Holds {
			break
		}
		if f.yes {
			return "", withCode(codeNo, fmt.Errorf("%s has got the lock meanwhile. Nothing was deleted", whoCell(*c)))
		}
		a.tell("%s has got the lock meanwhile.", whoCell(*c))
		l, *c = now, now.Contenders[i]
	}
	switch err := t.Delete(ctx, *c); {
	case err == nil:
		a.tell("Deleted %s.", clean(c.Path))
		return "deleted", nil
	case errors.Is(err, locks.ErrGone):
		a.tell("%s has left by itself.", whoCell(*c))
		return "left", nil
	case errors.Is(err, locks.ErrUnclear):
		a.tell("%s is gone: it was deleted, or %s left at the same moment.", clean(c.Path), whoCell(*c))
		return "unclear", nil
	case errors.Is(err, locks.ErrReplaced):
		return "replaced", withCode(codeNo, fmt.Errorf("%s: %w. It was not deleted", clean(c.Path), err))
	default:
		return "", a.plain(clean(c.Path), a.refused(path.Dir(c.Path), zk.PermDelete, err))
	}
}

// confirm asks for a yes.
func (a *App) confirm(ctx context.Context, in *bufio.Reader) error {
	fmt.Fprint(a.Err, "Delete the node? Type yes: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := in.ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		if text == "yes" || text == "y" {
			return nil
		}
		return withCode(codeNo, errors.New("not confirmed. Nothing was deleted"))
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return ctx.Err()
	}
}

// introduce says all that is known of a contender, in a few lines.
func (a *App) introduce(ctx context.Context, t *locks.Tree, l *locks.Lock, c locks.Contender) {
	name, origin := whoCell(c), "session "+c.Session
	switch {
	case c.ByHand:
		name, origin = "A node that was left by hand", "no session owns it"
	case c.ID == "":
		name = "A contender without a name"
	}
	does := map[string]string{"holds": "holds", "waits": "waits for", "?": "contends for"}[state(l, c)]
	others := l.Waiting()
	if !c.Holds {
		others--
	}
	a.tell("%s %s %s.\n  queued %s ago, %s, %s\n  node %s",
		name, does, clean(l.Path), t.Now(ctx, l.Path).Ago(c.Since), origin, waiting(others, "other "), clean(c.Path))
}

// deaf returns why a contender cannot hear the message of revocation, or "".
func deaf(c locks.Contender) string {
	switch who := whoCell(c); {
	case c.ByHand:
		return fmt.Sprintf("no session owns the node %s, so that nobody can give it up", clean(c.Node))
	case c.Client == locks.ClientKazoo:
		return who + " uses kazoo, whose locks do not listen to requests"
	case c.Client == locks.ClientZKLock:
		return who + " uses zk.Lock of go-zookeeper, which does not listen to requests"
	case c.Client == locks.ClientLatch:
		return who + " uses Curator's LeaderLatch, which does not listen to requests, and others find the leader by the data of its node"
	case c.Deaf:
		return who + " does not listen to requests: its node says so, as those of versions before 0.1.0 can"
	}
	return ""
}

// consequence says what a contender whose node is deleted will notice, and when.
func consequence(kind locks.Kind, c locks.Contender) string {
	const ours = `If it is connected, its watch tells it within a moment: Done, Err and its contexts
report the loss. If it is cut off or stopped, its lease clock tells it when it looks, at
the latest when its session timeout (10s by default) is over. Until then it may be at work.`
	const others = `Nothing tells it. It goes on with its work beside the next holder, so stop its process
first if you can.`
	switch {
	case c.ByHand:
		return "No client owns the node: deleting it takes the lock from nobody."
	case !c.Holds && kind != locks.Conflict:
		return "It waits, and loses its place in the queue.\nClients of this module join the queue again at its end."
	case c.Client == locks.ClientOurs:
		return "It uses the Go library turnstile.\n" + ours
	case c.Client == locks.ClientEither || c.Client == "":
		return "If it uses the Go library turnstile:\n" + ours + "\nIf it uses Apache Curator or another library:\n" + others
	case c.Client == locks.ClientZKLock:
		return "It uses zk.Lock of go-zookeeper, which does not watch its own node.\n" + others + " Its Unlock fails with \"node does not exist\"."
	}
	library := map[string]string{locks.ClientCurator: "Apache Curator", locks.ClientLatch: "Curator's LeaderLatch", locks.ClientKazoo: "kazoo"}[c.Client]
	return "It uses " + library + ", which does not watch its own node.\n" + others + " Its release reports no error."
}
