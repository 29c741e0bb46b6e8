package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// breakFlags are the flags of break.
type breakFlags struct {
	node       string
	force, yes bool
	wait       time.Duration
}

func breakCommand(a *App) *cobra.Command {
	var f breakFlags
	cmd := &cobra.Command{
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
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			switch {
			case err != nil:
				return err
			case f.yes && !f.force:
				return usagef("--yes is for --force: without it nothing is asked")
			case f.force && a.json && !f.yes:
				return usagef("--force with --json needs --yes: there is no question")
			case f.wait <= 0:
				return usagef("--wait %v is not positive", f.wait)
			}
			return a.breakLock(cmd.Context(), p, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "break this contender: the name of its `node`, as show --wide prints it")
	flags.BoolVar(&f.force, "force", false, "delete the node, after a question")
	flags.BoolVarP(&f.yes, "yes", "y", false, "with --force: do not ask")
	flags.DurationVar(&f.wait, "wait", 30*time.Second, "how long to wait until the holder has given the lock up")
	return cmd
}

func (a *App) breakLock(ctx context.Context, p string, f breakFlags) error {
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
	case errors.Is(readErr, zk.ErrNoNode), readErr == nil && len(next.Contenders) == 0:
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
func choose(l *locks.Lock, node string) (locks.Contender, error) {
	all := l.Holders()
	switch {
	case node != "":
		i := slices.IndexFunc(l.Contenders, func(c locks.Contender) bool { return node == c.Node || node == c.Path })
		if i < 0 {
			return locks.Contender{}, withCode(codeNotFound, fmt.Errorf("%s has no contender %s. It may have left", clean(l.Path), clean(path.Base(node))))
		}
		all = l.Contenders[i : i+1]
	case l.Kind == locks.Conflict:
		return locks.Contender{}, usagef("%s has contenders of several kinds of lock, so that nobody can say which one holds it. Name one:\n%s",
			clean(l.Path), nodeList(l.Contenders))
	case len(all) == 0:
		return locks.Contender{}, withCode(codeNo, fmt.Errorf("nobody holds %s", clean(l.Path)))
	case len(all) > 1:
		return locks.Contender{}, usagef("%s has %d holders. Name one:\n%s", clean(l.Path), len(all), nodeList(all))
	}
	if !all[0].Known { // a node of which nothing is known is not broken
		return locks.Contender{}, withCode(codeRefused, fmt.Errorf("%s: this client has not got the right READ to the node. See --auth and --auth-file", clean(all[0].Path)))
	}
	return all[0], nil
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

// ask sends the message of revocation, and waits. The message takes the place of the node's data, in which the contender's name
// is. If it was sent in vain, the data comes back, also if this process is killed.
func (a *App) ask(ctx context.Context, t *locks.Tree, l *locks.Lock, c *locks.Contender, f breakFlags) (result string, err error) {
	a.introduce(ctx, t, l, *c)
	if why := deaf(*c); why != "" {
		return "", withCode(codeFailed, fmt.Errorf("%s. --force deletes the node", why))
	}
	undo := a.restoreLater(*c)
	limited, cancel := context.WithTimeoutCause(ctx, f.wait, errWaited)
	defer cancel()
	defer func() {
		if err == nil || string(c.Data) == queue.RevokeMessage { // somebody has asked it before
			undo.Close()
			return
		}
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.connection.connect)
		defer cancel()
		if e := t.Restore(again, *c); e != nil {
			a.log.Warn("the data of the node is not back: "+queue.RevokeMessage+" is there", "node", c.Path, "err", e)
		}
		undo.Close()
	}()
	switch err := t.Ask(limited, *c); {
	case errors.Is(err, locks.ErrGone), errors.Is(err, locks.ErrReplaced): // it has left
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return "", withCode(codeConnect, errors.New("no server has confirmed the request in time"))
	case errors.Is(err, zklock.ErrNotRevocable):
		return "", fmt.Errorf("%w. --force deletes the node", err)
	case err != nil:
		return "", a.plain(clean(c.Path), a.refused(c.Path, zk.PermRead|zk.PermWrite, err))
	default:
		a.tell("Asked to give the lock up. Waiting for %s at most.", locks.Span(f.wait))
	}
	begun := time.Now()
	if err := t.WaitGone(limited, *c); err != nil {
		if errors.Is(err, errWaited) || limited.Err() != nil && ctx.Err() == nil {
			verb := "waits for"
			if c.Holds {
				verb = "holds"
			}
			return "stays", withCode(codeBusy, fmt.Errorf("%s still %s %s after %s. It may not listen, or hang. --force deletes its node",
				who(*c), verb, clean(l.Path), locks.Span(f.wait)))
		}
		return "", a.plain(clean(c.Path), err)
	}
	a.tell("%s is gone after %.1fs: it has given the lock up, or its session has ended.", who(*c), time.Since(begun).Seconds())
	return "left", nil
}

// restorerName is argument 0 of a process that writes the data of a contender back if break is killed.
const restorerName = "turnstile-break"

// asked is what such a process gets, and then a byte if it is not needed.
type asked struct {
	Access   access
	Path     string
	Token    int64
	Data     []byte
	Patience time.Duration
}

// restoreLater starts a process that restores the data of a contender if this one is killed. It must be closed.
func (a *App) restoreLater(c locks.Contender) io.Closer {
	how, err := a.access()
	program, pathErr := os.Executable()
	data, jsonErr := json.Marshal(asked{how, c.Path, c.Token, c.Data, a.connection.connect})
	if errors.Join(err, pathErr, jsonErr) != nil {
		return io.NopCloser(nil)
	}
	cmd := &exec.Cmd{Path: program, Args: []string{restorerName}, SysProcAttr: ownGroup()}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.log.Warn("if this process is killed now, the name of the contender is lost", "err", err)
		return io.NopCloser(nil)
	}
	_, _ = in.Write(data)
	return closerFunc(func() error {
		_, _ = in.Write([]byte("."))
		return errors.Join(in.Close(), cmd.Wait())
	})
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func isRestorer() bool { return len(os.Args) == 1 && os.Args[0] == restorerName }

// restoreAfterDeath is the whole life of the process that restoreLater starts.
func restoreAfterDeath(in io.Reader) int {
	var what asked
	d := json.NewDecoder(in)
	if d.Decode(&what) != nil {
		return 0
	}
	if rest, _ := io.ReadAll(io.MultiReader(d.Buffered(), in)); len(rest) > 0 {
		return 0
	}
	a := &App{Err: io.Discard, log: slog.New(slog.DiscardHandler)}
	a.connection = connection{servers: what.Access.Servers, timeout: what.Access.Timeout, connect: what.Patience, tls: what.Access.TLS}
	for _, i := range what.Access.Identities {
		a.connection.auths = append(a.connection.auths, i.Scheme+":"+string(i.Credential))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*what.Patience)
	defer cancel()
	t, done, err := a.tree(ctx)
	if err != nil {
		return codeConnect
	}
	defer done()
	if t.Restore(ctx, locks.Contender{Path: what.Path, Token: what.Token, Data: what.Data}) != nil {
		return codeFailed
	}
	return 0
}

// force deletes the node, after a question. It asks again if the contender has got the lock meanwhile: the operator has agreed to
// break a waiter.
func (a *App) force(ctx context.Context, t *locks.Tree, l *locks.Lock, c *locks.Contender, f breakFlags) (string, error) {
	in := bufio.NewReader(a.In)
	for {
		a.introduce(ctx, t, l, *c)
		for line := range strings.SplitSeq(consequence(l.Kind, *c), "\n") {
			a.tell("  %s", line)
		}
		if !f.yes {
			if err := a.confirm(ctx, in); err != nil {
				return "", err
			}
		}
		now, err := t.Update(ctx, &locks.Lock{Path: l.Path}, locks.All)
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
			return "", withCode(codeNo, fmt.Errorf("%s has got the lock meanwhile. Nothing was deleted", who(*c)))
		}
		a.tell("%s has got the lock meanwhile.", who(*c))
		l, *c = now, now.Contenders[i]
	}
	switch err := t.Delete(ctx, *c); {
	case err == nil:
		a.tell("Deleted %s.", clean(c.Path))
		return "deleted", nil
	case errors.Is(err, locks.ErrGone):
		a.tell("%s has left by itself.", who(*c))
		return "left", nil
	case errors.Is(err, locks.ErrUnclear):
		a.tell("%s is gone: it was deleted, or %s left at the same moment.", clean(c.Path), who(*c))
		return "unclear", nil
	case errors.Is(err, locks.ErrReplaced):
		return "replaced", withCode(codeNo, fmt.Errorf("%s: %w. It was not deleted", clean(c.Path), err))
	case errors.Is(err, zk.ErrNoAuth):
		return "", a.lacks(path.Dir(c.Path), zk.PermDelete)
	default:
		return "", a.plain(clean(c.Path), err)
	}
}

// confirm asks for a yes.
func (a *App) confirm(ctx context.Context, in *bufio.Reader) error {
	fmt.Fprint(a.Err, "Delete the node? Type yes: ")
	answer := make(chan string, 1)
	go func() {
		line, _ := in.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case text := <-answer:
		if strings.EqualFold(text, "yes") || strings.EqualFold(text, "y") {
			return nil
		}
		return withCode(codeNo, errors.New("not confirmed. Nothing was deleted"))
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return ctx.Err()
	}
}

// who names a contender in a sentence.
func who(c locks.Contender) string {
	if c.ByHand {
		return "the node " + clean(c.Node)
	}
	return short(c.Name(), 60)
}

// introduce says all that is known of a contender, in a few lines.
func (a *App) introduce(ctx context.Context, t *locks.Tree, l *locks.Lock, c locks.Contender) {
	now := t.Now(ctx, l.Path)
	name, origin := whoCell(c), "session "+c.Session
	switch {
	case c.ByHand:
		name, origin = "A node that was left by hand", "no session owns it"
	case c.ID == "":
		name = "A contender without a name"
	}
	does := map[string]string{"holds": "holds", "waits": "waits for", "?": "contends for"}[state(l, c)]
	behind := l.Waiting()
	if !c.Holds {
		behind--
	}
	a.tell("%s %s %s.\n  queued %s ago, %s, %s\n  node %s", name, does, clean(l.Path), now.Ago(c.Since), origin, waiting(behind, "other "), clean(c.Path))
}

// deaf returns why a contender cannot hear the message of revocation, or "".
func deaf(c locks.Contender) string {
	switch {
	case c.Client == locks.ClientHand:
		return fmt.Sprintf("no session owns the node %s, so that nobody can give it up", clean(c.Node))
	case c.Client == locks.ClientKazoo:
		return fmt.Sprintf("%s uses kazoo, whose locks do not listen to requests", who(c))
	case c.Client == locks.ClientZKLock:
		return fmt.Sprintf("%s uses zk.Lock of go-zookeeper, which does not listen to requests", who(c))
	case c.Client == locks.ClientLatch:
		return fmt.Sprintf("%s uses Curator's LeaderLatch, which does not listen to requests, and others find the leader by the data of its node", who(c))
	case c.Deaf:
		return fmt.Sprintf("%s does not listen to requests: its node says so, as those of versions before 0.1.0 can", who(c))
	}
	return ""
}

// libraries are names for people.
var libraries = map[string]string{
	locks.ClientCurator: "Apache Curator", locks.ClientLatch: "Curator's LeaderLatch", locks.ClientKazoo: "kazoo",
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
	return "It uses " + libraries[c.Client] + ", which does not watch its own node.\n" + others + " Its release reports no error."
}
