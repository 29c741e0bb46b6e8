package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/session"
)

func watchCommand(a *App) *cobra.Command {
	return onLock(&cobra.Command{
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

The time of a line is that of this machine when watch saw the change. Contenders that come and
leave within a tenth of a second need not be seen. A request to the holder is seen within two
seconds. If no server answers, the log says so, and watch goes on when one does.`,
		Example: `  turnstile watch /prod/locks/invoice-42`,
	}, a.watch)
}

// event is a change of a lock. The names of its JSON fields are part of the output of the command.
type event struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	*locks.Contender
	Limit int    `json:"limit,omitempty"` // of limit: the number of leases
	Text  string `json:"text,omitempty"`  // says more, for people
}

func (a *App) watch(ctx context.Context, p string) error {
	t, m, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	t.Patience = 0 // once it has begun, it waits for servers as long as it takes
	now := t.Now(ctx, p)
	var before *locks.Lock
	for err == nil && ctx.Err() == nil {
		before, err = a.look(ctx, t, p, before, now)
	}
	if ctx.Err() != nil {
		return withCode(codeOf(ctx, ctx.Err()), nil) // it has no other end
	}
	return a.plain(clean(p), err)
}

// look looks once, tells what has changed, and waits until the next look may see more. before is nil at the first look.
func (a *App) look(ctx context.Context, t *locks.Tree, p string, before *locks.Lock, now locks.Clock) (*locks.Lock, error) {
	const pause, longest = 100 * time.Millisecond, 2 * time.Second
	soon := time.After(pause) // spares the servers
	known := before
	if known == nil {
		known = &locks.Lock{Path: p}
	}
	// The watches are set before the look, so they tell of all that the look does not see.
	changed := make(chan struct{}, 1)
	change := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var l *locks.Lock
	var err error
	for _, dir := range known.Directories() {
		var watch *session.Watch
		if watch, err = t.WatchChildren(ctx, dir); err != nil {
			break
		}
		defer watch.AfterEvent(change)()
	}
	if err == nil {
		l, err = t.Update(ctx, known, locks.All)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		l, err = &locks.Lock{Path: p}, nil
	case errors.Is(err, locks.ErrBroken):
		a.log.Warn("watch sees nothing meanwhile", "err", a.plain(clean(p), err))
		l = before
		change()
	case err != nil:
		return nil, err
	}
	if err == nil {
		for _, e := range changes(before, l, now) {
			a.printEvent(e)
		}
		if len(l.Directories()) != len(known.Directories()) { // another directory is to be watched
			change()
		}
	}
	select {
	case <-changed:
	case <-time.After(longest):
	case <-ctx.Done():
	}
	select {
	case <-soon:
	case <-ctx.Done():
	}
	return l, nil
}

// changes returns the changes between two looks, in an order in which they can have happened. before is nil at the first look.
func changes(before, l *locks.Lock, now locks.Clock) (out []event) {
	first := before == nil
	if first {
		before = &locks.Lock{}
	}
	add := func(what string, c *locks.Contender, text string) {
		out = append(out, event{Time: time.Now().UTC(), Event: what, Contender: c, Text: text})
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
		switch {
		case find(l, c) != nil:
		case c.Holds:
			add("ended", &c, "")
		default:
			add("left", &c, "without the lock")
		}
	}
	if !first && l.Limit != before.Limit && l.Limit > 0 {
		out = append(out, event{Time: time.Now().UTC(), Event: "limit", Limit: l.Limit, Text: fmt.Sprintf("%d leases, was %d", l.Limit, before.Limit)})
	}
	now.Time = time.Now().Add(now.Skew)
	for _, c := range l.Contenders {
		was, queued := find(before, c), "queued "+now.Ago(c.Since)+" ago"
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

// printEvent writes a line.
func (a *App) printEvent(e event) {
	if a.json {
		_ = a.printJSON(e)
		return
	}
	line := fmt.Sprintf("%s  %-8s", e.Time.Local().Format("2006-01-02T15:04:05.000Z07:00"), e.Event)
	if e.Contender != nil {
		line += "  " + whoCell(*e.Contender)
		if e.Mode != "" {
			line += ", " + e.Mode
		}
		if e.Leases > 0 {
			line += ", " + count(e.Leases, "lease", "leases")
		}
	}
	if e.Text != "" {
		line += "  " + e.Text
	}
	if e.Contender != nil {
		line += "  " + clean(e.Node)
	}
	fmt.Fprintln(a.Out, line)
}
