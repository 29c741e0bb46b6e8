package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/session"
)

func watchCommand(a *App) *cobra.Command {
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "watch PATH",
		Short: "Print a line for each change of a lock",
		Long: `Print a line for each change of the lock at PATH, until Ctrl-C. It begins with the holders
and the waiters that are there. The path need not exist yet.

  holds, waits  a contender that was there at the beginning
  came          a contender came to the queue, and waits
  granted       a contender holds the lock now
  ended         a holder's node is gone: it has released the lock, its session has
                ended, or its node was deleted. The servers do not say which.
  left          a waiter's node is gone
  asked         somebody asks the holder to give the lock up
  limit         the limit of the semaphore has changed
  free          nobody contends any more
  disconnected, connected, lost
                of the connection and the session of watch itself

The time of a line is that of this machine when watch saw the change. Contenders that come and
leave within a tenth of a second need not be seen. A request to the holder is seen within two
seconds.`,
		Example: `  turnstile watch /prod/locks/invoice-42
  turnstile watch --json --for 1m /prod/locks/invoice-42`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			switch {
			case err != nil:
				return err
			case length < 0:
				return usagef("--for %v is negative", length)
			}
			return a.watch(cmd.Context(), p, length)
		},
	}
	cmd.Flags().DurationVar(&length, "for", 0, "end after this time (default: never)")
	return cmd
}

// event is a change of a lock. The names of its JSON fields are part of the output of the command.
type event struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	*locks.Contender
	Limit int    `json:"limit,omitempty"` // of limit: the number of leases
	Text  string `json:"text,omitempty"`  // says more, for people
}

func (a *App) watch(ctx context.Context, p string, length time.Duration) error {
	m, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	limited, cancel := context.WithCancel(ctx)
	if length > 0 {
		limited, cancel = context.WithTimeout(ctx, length)
	}
	defer cancel()
	w := &watcher{a: a, t: locks.NewTree(m, 0), path: p}
	defer m.Subscribe(w.connection())()
	w.now = w.t.Now(limited, p)
	for err == nil && limited.Err() == nil {
		err = w.look(limited)
	}
	switch {
	case ctx.Err() != nil:
		return withCode(codeOf(ctx, ctx.Err()), nil) // it has no other end
	case limited.Err() != nil:
		return nil
	}
	return a.plain(clean(p), err)
}

// watcher follows one lock.
type watcher struct {
	a    *App
	t    *locks.Tree
	path string
	now  locks.Clock
	last *locks.Lock // nil: not looked yet

	mu sync.Mutex // guards the output
}

// look looks once, tells what has changed, and waits until the next look may see more.
func (w *watcher) look(ctx context.Context) error {
	const pause, longest = 100 * time.Millisecond, 2 * time.Second
	begun := time.Now()
	before := w.last
	if before == nil {
		before = &locks.Lock{Path: w.path}
	}
	// The watches are set before the look, so they tell of all that the look does not see.
	changed := make(chan struct{}, 1)
	l, err := (*locks.Lock)(nil), error(nil)
	for _, dir := range before.Directories() {
		var watch *session.Watch
		if watch, err = w.t.WatchChildren(ctx, dir); err != nil {
			break
		}
		defer watch.AfterEvent(func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})()
	}
	if err == nil {
		l, err = w.t.Update(ctx, before, locks.All)
	}
	var broken *locks.BrokenError
	switch {
	case errors.Is(err, zk.ErrNoNode):
		l = &locks.Lock{Path: w.path}
	case errors.As(err, &broken):
		w.a.log.Warn("watch sees nothing meanwhile", "err", w.a.plain(clean(w.path), err))
	case err != nil:
		return err
	}
	if l != nil {
		w.print(changes(w.last, l, w.now)...)
		w.last = l
	}
	if l != nil && len(l.Directories()) == len(before.Directories()) { // otherwise another directory is to be watched
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(longest):
		}
	}
	select {
	case <-time.After(pause - time.Since(begun)): // spares the servers
	case <-ctx.Done():
	}
	return ctx.Err()
}

// changes returns the changes between two looks, in an order in which they can have happened. before is nil at the first look.
func changes(before, l *locks.Lock, now locks.Clock) (out []event) {
	first := before == nil
	if first {
		before = &locks.Lock{}
	}
	add := func(what string, c *locks.Contender, text string) *event {
		out = append(out, event{Time: time.Now().UTC(), Event: what, Contender: c, Text: text})
		return &out[len(out)-1]
	}
	// The token tells nodes apart, also those of one name. A node that could not be read has none.
	find := func(in *locks.Lock, c locks.Contender) *locks.Contender {
		for i := range in.Contenders {
			if other := &in.Contenders[i]; other.Path == c.Path && (other.Token == c.Token || !other.Known || !c.Known) {
				return other
			}
		}
		return nil
	}
	for _, c := range before.Contenders {
		switch stays := find(l, c) != nil; {
		case stays:
		case c.Holds:
			add("ended", &c, "")
		default:
			add("left", &c, "without the lock")
		}
	}
	if !first && l.Limit != before.Limit && l.Limit > 0 {
		add("limit", nil, fmt.Sprintf("%d leases, was %d", l.Limit, before.Limit)).Limit = l.Limit
	}
	for _, c := range l.Contenders {
		was := find(before, c)
		now.Time = time.Now().Add(now.Skew)
		queued := "queued " + now.Ago(c.Since) + " ago"
		switch {
		case first && c.Holds:
			add("holds", &c, queued)
		case first:
			add("waits", &c, queued)
		case c.Holds && was == nil:
			add("granted", &c, "at once")
		case c.Holds && !was.Holds:
			add("granted", &c, queued)
		case was == nil:
			add("came", &c, "")
		}
		if c.Revoked && !first && (was == nil || !was.Revoked) {
			add("asked", &c, "somebody asks it to give the lock up")
		}
	}
	if len(l.Contenders) == 0 && (first || len(before.Contenders) > 0) {
		add("free", nil, "nobody contends")
	}
	return out
}

// connection returns a function that tells of the connection.
func (w *watcher) connection() func(session.Change) {
	was := session.Connected
	return func(c session.Change) {
		before := was
		was = c.To
		e := event{Time: c.At.UTC()}
		switch {
		case c.To == session.Suspended:
			e.Event, e.Text = "disconnected", "no server answers; changes are told when one does"
		case c.To == session.Connected && before == session.Suspended:
			e.Event, e.Text = "connected", "again, with the same session"
		case c.To == session.Connected && before != session.Connected:
			e.Event, e.Text = "connected", "again, with a new session "+locks.SessionText(c.Session)
		case c.To == session.Lost:
			e.Event, e.Text = "lost", "the session of this watch; a new one will be opened"
		default:
			return
		}
		w.print(e)
	}
}

// print writes lines.
func (w *watcher) print(events ...event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		if w.a.json {
			_ = w.a.printJSON(e)
			continue
		}
		parts := []string{e.Time.Local().Format("2006-01-02T15:04:05.000Z07:00"), fmt.Sprintf("%-8s", e.Event)}
		if e.Contender != nil {
			what := whoCell(*e.Contender)
			if e.Mode != "" {
				what += ", " + e.Mode
			}
			if e.Leases > 0 {
				what += ", " + count(e.Leases, "lease", "leases")
			}
			parts = append(parts, what)
		}
		if e.Text != "" {
			parts = append(parts, e.Text)
		}
		if e.Contender != nil {
			parts = append(parts, clean(e.Node))
		}
		fmt.Fprintln(w.a.Out, strings.Join(parts, "  "))
	}
}
