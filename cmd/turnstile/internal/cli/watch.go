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

// shortestInterval spares the servers.
const shortestInterval = 50 * time.Millisecond

func watchCommand(a *App) *cobra.Command {
	var interval, length time.Duration
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
  asked         somebody asks the contender to give the lock up
  limit         the limit of the semaphore has changed
  free, none    nobody contends, or the path does not exist any more
  missed        so many contenders came and left between two looks
  disconnected, connected, lost
                of the connection and the session of watch itself. Changes in between are
                told, or counted as missed, when it is connected again.

The time of a line is that of this machine when watch saw the change, with its zone. "queued"
is as QUEUED of show.

The end of a hold, and the next holder, are told at once. For the arrival of contenders,
watch looks every --interval, which costs one small request, and two or more if there is a
change.

With --json each line is an object {time, event, text, limit, missed}, and the fields of a
contender as "show --json" prints them.`,
		Example: `  turnstile watch /prod/locks/invoice-42
  turnstile watch --json --for 1m /prod/locks/invoice-42`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			switch {
			case err != nil:
				return err
			case isContender(p):
				return usagef("%s is the node of a contender, not a lock", clean(p))
			case interval < shortestInterval:
				return usagef("--interval %v is shorter than %v", interval, shortestInterval)
			case length < 0:
				return usagef("--for %v is negative", length)
			}
			return a.watch(cmd.Context(), p, interval, length)
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", 500*time.Millisecond, "how often to look for contenders that came")
	cmd.Flags().DurationVar(&length, "for", 0, "end after this time; 0 is never")
	return cmd
}

func (a *App) watch(ctx context.Context, p string, interval, length time.Duration) error {
	m, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	limited := ctx
	if length > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	w := &watcher{a: a, t: locks.NewTree(m, 0), last: &locks.Lock{Path: p}, interval: interval, armed: map[string]*session.Watch{}, wake: make(chan struct{}, 1)}
	defer m.Subscribe(w.connection())()
	err = w.run(limited)
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
	a        *App
	t        *locks.Tree
	interval time.Duration

	last    *locks.Lock
	history history
	armed   map[string]*session.Watch // by path: the directory, and some holders
	wake    chan struct{}

	mu sync.Mutex // guards the output
}

// mostWatches bounds how many holders are watched. The others are seen at the next look.
const mostWatches = 16

// run looks and tells until ctx ends.
func (w *watcher) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		err := w.look(ctx)
		var broken *locks.BrokenError
		switch {
		case errors.As(err, &broken):
			w.a.Log.Warn("watch sees nothing meanwhile", "err", w.a.plain(clean(w.last.Path), err))
			if err := rest(ctx, w.interval); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look looks once, tells what has changed, and waits until the next look may see more.
func (w *watcher) look(ctx context.Context) error {
	l, err := w.t.Update(ctx, w.last, locks.All)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		l = &locks.Lock{Path: w.last.Path}
	case err != nil:
		return err
	}
	w.last = l
	w.print(w.history.look(l, time.Now())...)
	if sure, err := w.arm(ctx); err != nil || !sure { // if it is not sure, a holder has left already
		return err
	}
	return w.wait(ctx)
}

// arm sets watches on the holders, and on the directory for the limit of a semaphore. It returns false if
// something has changed since the last look. Then the watches need not be complete.
func (w *watcher) arm(ctx context.Context) (sure bool, err error) {
	s, err := w.t.Session(ctx)
	if err != nil {
		return false, err
	}
	sure = true
	still := map[string]*session.Watch{}
	for _, node := range w.wanted() {
		if old := w.armed[node.path]; old != nil && old.Event() == session.WatchPending {
			still[node.path] = old
			continue
		}
		_, stat, watch, err := s.Watch(ctx, node.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case errors.Is(err, zk.ErrNoAuth):
			continue // it is seen at the next look
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			return false, nil // the connection or the session was lost: look again
		}
		still[node.path] = watch
		w.follow(ctx, watch)
		if stat.Mzxid != node.written { // before the watch was set, which does not tell of it
			w.last.Forget(node.path)
			sure = false
		}
	}
	w.armed = still
	return sure, nil
}

// watched is a node to watch, and the transaction that wrote the data that the last look has read.
type watched struct {
	path    string
	written int64
}

// wanted returns the nodes to watch.
func (w *watcher) wanted() []watched {
	var out []watched
	if w.last.Kind == locks.Semaphore {
		out = append(out, watched{w.last.Path, w.last.Written})
	}
	for _, c := range w.last.Holders() {
		if len(out) < mostWatches {
			out = append(out, watched{c.Path, c.Written})
		}
	}
	return out
}

// follow wakes the watcher when a watch ends.
func (w *watcher) follow(ctx context.Context, watch *session.Watch) {
	go func() {
		select {
		case <-watch.Done():
			select {
			case w.wake <- struct{}{}:
			default:
			}
		case <-ctx.Done():
		}
	}()
}

// wait returns when there is something to look at. Nodes whose data has changed are read again.
func (w *watcher) wait(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wake:
			for p, watch := range w.armed {
				if watch.Event() != session.WatchPending {
					w.last.Forget(p)
				}
			}
			return nil
		case <-tick.C:
			changed, err := w.changed(ctx)
			if changed || err != nil {
				return err
			}
		}
	}
}

// changed asks whether contenders came or left: one request, two in Curator's layout.
func (w *watcher) changed(ctx context.Context) (bool, error) {
	var now locks.Lock
	for _, dir := range w.last.Directories() {
		stat, err := w.t.Exists(ctx, dir)
		if err != nil {
			return false, err
		}
		if stat != nil {
			now.Count(stat)
		}
	}
	return now.Changes != w.last.Changes || now.Birth != w.last.Birth, nil
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
			e.Event, e.Text = evDisconnected, "no server answers; changes are told when one does"
		case c.To == session.Connected && before == session.Suspended:
			e.Event, e.Text = evConnected, "again, with the same session"
		case c.To == session.Connected && before != session.Connected:
			e.Event, e.Text = evConnected, "again, with a new session "+locks.SessionText(c.Session)
		case c.To == session.Lost:
			e.Event, e.Text = evLost, "the session of this watch; a new one will be opened"
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
		if w.a.JSON {
			_ = w.a.printJSON(e)
			continue
		}
		fmt.Fprintln(w.a.Out, e.line())
	}
}

// line is an event for people.
func (e event) line() string {
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
	return strings.Join(parts, "  ")
}
