package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

func whyCommand(a *App) *cobra.Command {
	return a.onTree(&cobra.Command{
		Use:   "why PATH",
		Short: "Say why a lock does not move, and what to do",
		Long: `Say in three lines why the lock at PATH does not move: who holds it, and whether the holder's
process answers; who waits, and whether in a circle; and what to do next.

Servers say whether a process answers if their configuration allows it
(4lw.commands.whitelist=srvr,cons). A circle is only ever possible: the servers do not know which
goroutine made a node.`,
	}, false, a.why)
}

func (a *App) why(ctx context.Context, t *locks.Tree, p string) error {
	l, err := readLock(ctx, t, p)
	if err != nil {
		return err
	}
	now := t.Now(ctx, p)
	if len(l.Holders()) == 0 {
		text := a.summary(l) + "."
		if l.Waiting() > 0 && l.Kind != locks.Conflict {
			text = fmt.Sprintf("%s: nobody holds it, and %s. Look again: it is about to move.", clean(p), waiting(l.Waiting(), ""))
		}
		fmt.Fprintln(a.Out, text)
		return nil
	}
	holder := l.Holders()[0]
	answers, silent := a.answers(ctx, holder)
	found, err := t.Walk(ctx, "/", mostDirectories)
	if err != nil {
		found = &locks.Found{Locks: []*locks.Lock{l}, Unread: []locks.Unread{{Path: "/", Error: err.Error()}}}
	}
	circle := locks.Circle(l, found.Locks)
	more := ""
	if len(l.Holders()) > 1 {
		more = fmt.Sprintf(", and so do %d more", len(l.Holders())-1)
	}
	waiters := "nobody"
	if i := slices.IndexFunc(l.Contenders, func(c locks.Contender) bool { return !c.Holder }); i >= 0 {
		waiters = fmt.Sprintf("%d, the first is %s, for %s", l.Waiting(), whoCell(l.Contenders[i]), now.Ago(l.Contenders[i].Since))
	}
	var words []string
	for _, w := range circle {
		words = append(words, fmt.Sprintf("%s waits for %s, behind %s", whoCell(w.Waiter), clean(w.Lock.Path), whoCell(w.Behind)))
	}
	switch {
	case len(circle) > 0:
		waiters += ". A circle is possible: " + strings.Join(words, "; ")
	case l.Waiting() > 0:
		waiters += ". No circle is seen"
	}
	a.print("Held: %s holds %s%s, queued %s ago. %s.", whoCell(holder), clean(p), more, now.Ago(holder.Since), answers)
	a.print("Waiting: %s.\nNext: %s.", waiters, a.next(l, holder, silent, len(circle) > 0))
	a.remark(now, found.Unread...)
	return nil
}

// answers says whether the process of a holder does, as the servers see it. silent: it does not.
func (a *App) answers(ctx context.Context, c locks.Contender) (text string, silent bool) {
	opts, err := a.connection.options(a.log)
	switch {
	case c.ByHand():
		return "No session owns the node: no process will ever give it up", true
	case err != nil:
		return err.Error(), false
	}
	cfg, _ := a.connection.tls()
	limited, cancel := context.WithTimeout(ctx, a.connection.Connect)
	defer cancel()
	seen, asked, all := ensemble.LastSeen(limited, a.connection.Servers, opts, cfg, c.Session)
	switch {
	case seen != nil && seen.Silence > 3*seen.Timeout/4:
		return fmt.Sprintf("Its process at %s has been silent for %s: its session %s ends after %s", seen.Client, locks.Span(seen.Silence), c.SessionText(), seen.Timeout), true
	case seen != nil:
		return fmt.Sprintf("Its process at %s answers: session %s was heard of %.1fs ago", seen.Client, c.SessionText(), seen.Silence.Seconds()), false
	case asked == 0:
		return fmt.Sprintf("Whether its process answers is not known: the servers do not allow the word cons. Session %s is live", c.SessionText()), false
	case asked < all:
		return fmt.Sprintf("%d of %d servers tell nothing, and the others have no connection of session %s", all-asked, all, c.SessionText()), false
	}
	return fmt.Sprintf("Its process is not connected: session %s ends when its timeout is over", c.SessionText()), true
}

// next says what to do about a lock.
func (a *App) next(l *locks.Lock, holder locks.Contender, silent, circle bool) string {
	words := []string{"break", l.Path}
	if len(l.Holders()) > 1 {
		words = []string{"break", "--node", holder.Node(), l.Path}
	}
	force := a.again(append(words, "--force")...)
	switch {
	case holder.ByHand():
		return "delete the node: " + force
	case l.Waiting() == 0:
		return "nothing waits. If the holder should not hold it: " + a.again(words...)
	case silent:
		return "wait for the end of the session, which frees the lock, or continue or kill the process. It still holds the lock if it is only stopped"
	case circle:
		return "end one of the processes, or ask it for a lock: " + a.again(words...)
	case deaf(holder) != "":
		return "see what the holder does, or end it. It does not hear a request. " + force + " deletes its node"
	}
	return "see what the holder does. To ask it for the lock: " + a.again(words...)
}
