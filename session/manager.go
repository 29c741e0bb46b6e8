package session

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Manager keeps a session open: it connects, and opens another session when one is lost. Make one
// Manager per process and ensemble with [Connect] or [Open]. All methods may be called by any
// number of goroutines at once. They panic if neither of the two has made the Manager.
type Manager core.Manager

// core returns what m is. It panics if m is nil or a zero value.
func (m *Manager) core() *core.Manager { return (*core.Manager)(m).Made() }

// Connect opens a session with the servers of a connect string such as "h1:2181,h2:2181/chroot".
// It consists of hosts with or without ports (default 2181), with IPv6 addresses in brackets, and
// an optional path. All nodes lie below that path, which is created when needed.
//
// Connect returns when a session is live. It fails when ctx has ended, with an error that matches
// ctx.Err() and says why there was no session. It fails at once with an error that matches
// [ErrInvalid] if servers or an option cannot work, or if the servers grant a session timeout that is too short
// (see [WithMargin]), and with [zk.ErrAuthFailed] if the servers refuse
// an identity. ctx bounds Connect only. Close ends the manager. [Open] does not wait.
func Connect(ctx context.Context, servers string, opts ...Option) (*Manager, error) {
	misuse.Context(ctx, "session: Connect")
	cfg, err := newConfig(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	m, err := core.Connect(ctx, servers, cfg)
	return (*Manager)(m), err
}

// Open is Connect for programs that start without ZooKeeper: it does not wait for a session. It
// returns a manager in state [Connecting], which goes on to try until a session is live or the
// manager is closed. [Manager.Session] and the locks wait for that session. Until there is one,
// the log says why: see [WithLogger].
//
// Open fails only if servers or an option cannot work, with an error that matches [ErrInvalid]. If
// the servers refuse an identity, or grant a session timeout that is too short, [Manager.Session] and the locks
// return that error, and the manager goes on to ask for a session.
func Open(servers string, opts ...Option) (*Manager, error) {
	cfg, err := newConfig(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return (*Manager)(core.Start(cfg)), nil
}

// Session returns the live session. If there is none, it waits for one. It fails when ctx ends, with an
// error that matches ctx.Err() and says why there is no connection. It fails with an error that matches
// [ErrClosed] if the manager is closed, with [zk.ErrAuthFailed] for as long as the servers refuse an
// identity, and with [ErrInvalid] for as long as they grant a session timeout that is too short. The
// manager goes on to ask for a session.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	misuse.Context(ctx, "session: Manager.Session")
	s, err := m.core().Session(ctx)
	return (*Session)(s), err
}

// State returns the manager's state. If the session's clock has run out by the time of the call,
// the state is Lost.
func (m *Manager) State() State { return m.core().State() }

// Subscribe calls f with each change of state, in order and one at a time, from a goroutine of its own.
// The first change tells the present state: its From and To are both that state. f may block, and may call
// anything in this package. If f ends its goroutine by runtime.Goexit, another goroutine goes on with the
// next change. cancel ends the subscription without waiting for f. The subscription also ends after the
// change to Closed. A nil f panics.
func (m *Manager) Subscribe(f func(Change)) (cancel func()) {
	made := m.core()
	if f == nil {
		panic("session: Manager.Subscribe: nil function")
	}
	return made.Subscribe(f)
}

// Status is what a Manager knows of its connection at a moment.
type Status struct {
	State   State
	Session *Session      // the live one; nil if there is none
	Timeout time.Duration // the session timeout that the manager asks the servers for
	// Server is the host and port of the server that the session is connected to, or was connected to last, as in the
	// connect string. It is "" if there is no session.
	Server string
	// Failure says why there is no connection, or which server has not answered for how long. It is nil if nothing is
	// wrong, and as long as nothing is known.
	Failure error
}

// Status returns what the manager knows of its connection, for pages and health checks. It sends nothing, and waits for
// nothing.
func (m *Manager) Status() Status {
	s := m.core().Status()
	return Status{State: s.State, Session: (*Session)(s.Session), Timeout: s.Timeout, Server: s.Server, Failure: s.Failure}
}

// AddTrace adds hooks to those of [WithTrace], for a package that is given a manager and watches its locks. They are called
// after those that are there, until the manager is closed. They are not told how a thing ends that had begun before. The
// first call of a State hook tells the present state, as that of Subscribe does.
func (m *Manager) AddTrace(t Trace) { m.core().AddTrace(t) }

// Trace returns the hooks to call at present: those of [WithTrace] and those of AddTrace, together. It is for packages that
// make locks. It never returns nil, and nobody may change the result.
func (m *Manager) Trace() *Trace { return m.core().Hooks() }

// TellLoss has f called later, by the goroutine of the manager that tells of losses. It returns at once. All calls are made
// in the order of TellLoss. It is for packages that make locks: f calls the hooks for a lock that was lost, so hooks that
// block delay no other lock. If f blocks, a bounded number of calls waits, and further ones are dropped, which the log tells.
// A nil f panics.
func (m *Manager) TellLoss(f func()) {
	made := m.core()
	if f == nil {
		panic("session: Manager.TellLoss: nil function")
	}
	made.CallLate(f)
}

// Logger returns the logger of [WithLogger], or the default. The lines go to it by the goroutine that hands on those of the
// manager.
func (m *Manager) Logger() *slog.Logger { return m.core().Logger() }

// BackOff returns new waits between the tries of one thing, as [WithRetry] makes them. It never returns nil.
func (m *Manager) BackOff() backoff.BackOff { return m.core().Retry()() }

// MaxNodes returns the bound of [WithMaxNodes], or the default.
func (m *Manager) MaxNodes() int { return m.core().MaxNodes() }

// Chroot returns the path of the connect string below which all nodes lie, or "/" if it has none.
func (m *Manager) Chroot() string { return m.core().Chroot() }

// FullName returns the name of a path outside this manager, such as
// "h1:2181,h2:2181/app/locks/a". It consists of the name of the ensemble, the chroot and the
// path. The name of the ensemble is that of [WithName], or else the servers given to Connect in
// sorted order. So the full name is the same in every process that uses the same name or servers
// for the ensemble. FullName does no I/O.
func (m *Manager) FullName(path string) string { return m.core().FullName(path) }

// Close gives up everything held under the session, closes the session on the servers, and ends
// all goroutines of the manager. Waiting calls return [ErrClosed]. Close takes at most 5 seconds.
// If no server has confirmed the end by then, Close returns an error, and the servers free the
// locks when they expire the session. Close may be called more than once and always returns the
// same error.
func (m *Manager) Close() error { return m.core().Close() }
