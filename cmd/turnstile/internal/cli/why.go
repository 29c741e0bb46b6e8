package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

func whyCommand(a *App) *cobra.Command {
	return onLock(&cobra.Command{
		Use:   "why PATH",
		Short: "Say why a lock does not move, and what to do",
		Long: `Say in three lines why the lock at PATH does not move: the holder, since when it has the lock, and
whether its process answers; the waiters, and whether they wait in a circle; and what to do next.

Whether the holder's process answers is what the servers say by the word cons: when its
session was heard of last, and from which address. They say so if the configuration of the
servers allows that (4lw.commands.whitelist=srvr,cons).

All locks of the ensemble are read to find circles: contenders that wait for each other. A
circle is only ever possible: the servers do not know which goroutine made a node.`,
		Example: `  turnstile why /prod/locks/invoice-42`,
	}, a.why)
}

// whyJSON is the output of "why --json".
type whyJSON struct {
	lockJSON
	Answers string   `json:"answers"` // whether the first holder's process does
	Circle  []string `json:"circle"`  // what waits for what
	Next    string   `json:"next"`
}

func (a *App) why(ctx context.Context, p string) error {
	t, l, done, err := a.readLock(ctx, p)
	if err != nil {
		return err
	}
	defer done()
	now := t.Now(ctx, p)
	holders := l.Holders()
	if len(holders) == 0 {
		text := a.summary(l) + "."
		if l.Waiting() > 0 {
			text = fmt.Sprintf("%s: nobody holds it, and %s. Look again: it is about to move.", clean(p), waiting(l.Waiting(), ""))
		}
		if a.json {
			return a.printJSON(whyJSON{lockJSON: jsonOf(l), Circle: []string{}, Next: text})
		}
		fmt.Fprintln(a.Out, text)
		return nil
	}
	first := holders[0]
	answers, silent := a.answers(ctx, first)
	found, err := t.Walk(ctx, "/", mostDirectories, locks.All)
	if err != nil {
		found = &locks.Found{Locks: []*locks.Lock{l}, Unread: []locks.Unread{{Path: "/", Error: err.Error()}}}
	}
	circle := circleOf(l, found.Locks)
	next := a.next(l, first, silent, len(circle) > 0)
	if a.json {
		j := whyJSON{jsonOf(l), answers, append([]string{}, circle...), next}
		j.Contenders = l.Contenders
		return a.printJSON(j)
	}
	more := ""
	if n := len(holders) - 1; n > 0 {
		more = fmt.Sprintf(", and so do %d more", n)
	}
	fmt.Fprintf(a.Out, "Held: %s holds %s%s, queued %s ago. %s.\n", whoCell(first), clean(p), more, now.Ago(first.Since), answers)
	line := "Waiting: nobody"
	for _, c := range l.Contenders {
		if !c.Holds {
			line = fmt.Sprintf("Waiting: %d, the first is %s, for %s", l.Waiting(), whoCell(c), now.Ago(c.Since))
			break
		}
	}
	switch {
	case len(circle) > 0:
		line += ". A circle is possible: " + strings.Join(circle, "; ")
	case l.Waiting() > 0:
		line += ". No circle is seen"
	}
	fmt.Fprintf(a.Out, "%s.\nNext: %s.\n", line, next)
	a.say(now.Note())
	a.printUnread(found)
	return nil
}

// answers says whether the process of a holder does, as the servers see it. silent: it does not.
func (a *App) answers(ctx context.Context, c locks.Contender) (text string, silent bool) {
	if c.ByHand {
		return "No session owns the node: no process will ever give it up", true
	}
	cfg, err := a.connection.tls.config()
	if err != nil || !c.Known {
		return "Its node cannot be read", false
	}
	limited, cancel := context.WithTimeout(ctx, a.connection.connect)
	defer cancel()
	servers, _ := ensemble.Split(a.connection.servers)
	seen, asked, all := ensemble.LastSeen(limited, servers, cfg, c.Owner)
	switch {
	case seen != nil && seen.Silence > 3*seen.Timeout/4:
		return fmt.Sprintf("Its process at %s has been silent for %s: its session %s ends after %s", seen.Client, locks.Span(seen.Silence), c.Session, seen.Timeout), true
	case seen != nil:
		return fmt.Sprintf("Its process at %s answers: session %s was heard of %.1fs ago", seen.Client, c.Session, seen.Silence.Seconds()), false
	case asked == 0:
		return fmt.Sprintf("Whether its process answers is not known: the servers do not allow the word cons. Session %s is live", c.Session), false
	case asked < all:
		return fmt.Sprintf("%d of %d servers tell nothing, and the others have no connection of session %s", all-asked, all, c.Session), false
	}
	return fmt.Sprintf("Its process is not connected: session %s ends when its timeout is over", c.Session), true
}

// next says what to do about a lock.
func (a *App) next(l *locks.Lock, holder locks.Contender, silent, circle bool) string {
	words := []string{"break", l.Path}
	if len(l.Holders()) > 1 {
		words = []string{"break", "--node", holder.Node, l.Path}
	}
	force := a.again(append(words, "--force")...)
	switch {
	case l.Kind == locks.Conflict:
		return "programs use different kinds of lock at this path: give one of them another path"
	case holder.ByHand:
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

// circleOf returns in words what a circle of a lock may be, from what waits for the lock back to it.
func circleOf(l *locks.Lock, all []*locks.Lock) []string {
	stuck, seen := locks.Stuck(all), map[string]bool{}
	// A contender may be what waits elsewhere. Follow that, until the way comes back to this lock.
	var follow func(c locks.Contender) []string
	follow = func(c locks.Contender) []string {
		for _, other := range all {
			for _, w := range other.Contenders {
				if w.Holds || w.Session != c.Session || seen[w.Path] || !locks.SameTask(c, w) {
					continue
				}
				seen[w.Path] = true
				for _, b := range stuck[w.Path] {
					word := fmt.Sprintf("%s waits for %s, behind %s", whoCell(w), clean(other.Path), whoCell(b))
					if other.Path == l.Path {
						return []string{word}
					}
					if rest := follow(b); rest != nil {
						return append([]string{word}, rest...)
					}
				}
			}
		}
		return nil
	}
	for _, holder := range l.Holders() {
		if _, ok := stuck[holder.Path]; ok {
			if words := follow(holder); words != nil {
				return words
			}
		}
	}
	return nil
}
