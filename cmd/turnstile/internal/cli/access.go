//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// If turnstile is killed, its guard deletes the contender's node when the command and its descendants are dead. So the next
// contender need not wait until the session times out. For that, the guard knows each session before turnstile contends in it.

// estate is what a turnstile that has died leaves to its guard.
type estate struct {
	Connection connection
	Directory  string // of the contenders
	Session    int64
	Timeout    time.Duration    // of the session: then the servers delete the node by themselves
	Asked      *queue.Contender // by break, in vain so far: all that is left is its name
}

// keepName has a guard write the data of a contender back if turnstile is killed before forget is called.
func (a *App) keepName(c locks.Contender) (forget func()) {
	guard, err := supervise.StartGuard(os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		a.log.Warn("if break is killed, the name of the contender is lost", "err", err)
		return func() {}
	}
	guard.Note(estate{Connection: a.connection, Timeout: time.Minute, Asked: &c.Contender})
	return guard.Close
}

// note tells the guard of the sessions of a manager, the present one at once.
func (a *App) note(guard *supervise.Guard, m *session.Manager, s *session.Session, dir string) (stop func()) {
	tell := func(id int64) { guard.Note(estate{a.connection, dir, id, s.Timeout(), nil}) }
	tell(s.ID())
	return m.Subscribe(func(c session.Change) {
		if c.To == session.Connected && c.Session != s.ID() {
			tell(c.Session)
		}
	})
}

// free deletes the nodes of a turnstile that has died. It looks twice: the servers may get a create that was on its way after
// the first look.
func free(note json.RawMessage) {
	var e estate
	if json.Unmarshal(note, &e) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(e.Timeout, time.Minute))
	defer cancel()
	opts, err := e.Connection.options(slog.New(slog.DiscardHandler))
	if err != nil {
		return
	}
	m, err := session.Connect(ctx, e.Connection.Servers, opts...)
	if err != nil {
		return
	}
	defer m.Close()
	if e.Asked != nil {
		_ = locks.NewTree(m).Restore(ctx, locks.Contender{Contender: *e.Asked})
		return
	}
	for done := 0; done < 2 && ctx.Err() == nil; {
		if e.delete(ctx, m) == nil {
			done++
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// delete deletes the nodes once.
func (e estate) delete(ctx context.Context, m *session.Manager) error {
	s, err := m.Session(ctx)
	if err == nil {
		err = s.Sync(ctx, e.Directory)
	}
	var names []string
	if err == nil {
		names, _, err = s.Children(ctx, e.Directory)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, name := range names {
		p := path.Join(e.Directory, name)
		stat, getErr := s.Exists(ctx, p)
		if getErr == nil && stat != nil && stat.EphemeralOwner == e.Session {
			getErr = s.Delete(ctx, p, -1)
		}
		if getErr != nil && !errors.Is(getErr, zk.ErrNoNode) {
			err = getErr
		}
	}
	return err
}
