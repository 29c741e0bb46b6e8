package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
)

func watchCommand(a *App) *cobra.Command {
	return a.onTree(&cobra.Command{
		Use:   "watch PATH",
		Short: "Print a line for each change of a lock",
		Long: `Print a line for each change of the lock at PATH, until Ctrl-C. The path need not exist yet.

  holds, waits  a contender that was there at the beginning
  came, left    a contender came to the queue, or a waiter's node is gone
  granted       a contender holds the lock now
  ended         a holder's node is gone: it has released the lock, its session has
                ended, or its node was deleted. The servers do not say which.
  asked         somebody asks the holder to give the lock up
  limit         the limit of the semaphore has changed
  free          nobody contends any more

Watch looks five times a second, less often at a long queue. Contenders that come and leave
between two looks are not seen.`,
	}, false, a.watch)
}

func (a *App) watch(ctx context.Context, t *locks.Tree, p string) error {
	now := t.Now(ctx, p)
	var before *locks.Lock
	for ctx.Err() == nil {
		begun := time.Now()
		l, err := t.Read(ctx, p)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			l = &locks.Lock{Path: p}
		case ctx.Err() != nil, errors.Is(err, locks.ErrUnreachable): // it waits for servers as long as it takes, and the log says so
			continue
		case err != nil:
			return err
		}
		now.Time = time.Now().Add(now.Skew)
		a.tell(before, l, now)
		before = l
		const pause, load = 200 * time.Millisecond, 10 // at most a tenth of the time goes into reading
		select {
		case <-time.After(max(pause, load*time.Since(begun))):
		case <-ctx.Done():
		}
	}
	return withCode(codeOf(ctx, ctx.Err()), nil) // it has no other end
}

// tell prints the changes between two looks, in an order in which they can have happened. before is nil at the first look.
func (a *App) tell(before, l *locks.Lock, now locks.Clock) {
	first := before == nil
	if first {
		before = &locks.Lock{}
	}
	line := func(event string, c *locks.Contender, text string) {
		words := fmt.Sprintf("%s  %-8s", time.Now().Format("2006-01-02T15:04:05.000Z07:00"), event)
		if c != nil {
			words += "  " + whoCell(*c)
			if c.Mode != "" {
				words += ", " + c.Mode
			}
			if c.Leases > 0 {
				words += ", " + count(c.Leases, "lease", "leases")
			}
		}
		if text != "" {
			words += "  " + text
		}
		if c != nil {
			words += "  " + clean(c.Node())
		}
		a.print("%s", words)
	}
	// The token tells nodes apart, also those of one name.
	find := func(in *locks.Lock, c locks.Contender) *locks.Contender {
		for i := range in.Contenders {
			if in.Contenders[i].Path == c.Path && in.Contenders[i].Token == c.Token {
				return &in.Contenders[i]
			}
		}
		return nil
	}
	for _, c := range before.Contenders {
		switch {
		case find(l, c) != nil:
		case c.Holder:
			line("ended", &c, "")
		default:
			line("left", &c, "without the lock")
		}
	}
	if !first && l.Limit != before.Limit && l.Limit > 0 {
		line("limit", nil, fmt.Sprintf("%d leases, was %d", l.Limit, before.Limit))
	}
	for _, c := range l.Contenders {
		was, queued := find(before, c), "queued "+now.Ago(c.Since)+" ago"
		switch {
		case first && c.Holder:
			line("holds", &c, queued)
		case first:
			line("waits", &c, queued)
		case c.Holder && was == nil:
			line("granted", &c, "at once")
		case c.Holder && !was.Holder:
			line("granted", &c, queued)
		case was == nil:
			line("came", &c, "")
		}
		if c.Revoked() && !first && (was == nil || !was.Revoked()) {
			line("asked", &c, "somebody asks it to give the lock up")
		}
	}
	if len(l.Contenders) == 0 && (first || len(before.Contenders) > 0) {
		line("free", nil, "nobody contends")
	}
}
