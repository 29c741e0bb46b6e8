package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Manager keeps a session open: it connects, and opens another session when one is lost. Make one
// Manager per process and ensemble with [Connect] or [Open]. All methods may be called by any
// number of goroutines at once. They panic if neither of the two has made the Manager.
type Manager struct {
	cfg    *config
	dialer *dialer

	open    context.Context // ended by Close
	shut    context.CancelFunc
	stopped chan struct{} // closed when all goroutines have ended

	closeErr error // no server has confirmed the end of a session; read once stopped is closed

	subs subscribers

	warned warned

	mu      sync.Mutex
	state   State
	session *Session      // the live one; nil while there is none
	changed chan struct{} // closed and replaced whenever state or session change
	refused error         // why the last session could not be used although it was opened; else nil
}

// made returns m. It panics if m is nil or a zero value.
func (m *Manager) made() *Manager {
	if m == nil || m.cfg == nil {
		panic("session: Manager not made by Connect or Open")
	}
	return m
}

// flushTime bounds how long Close waits for the log.
const flushTime = 100 * time.Millisecond

// closeTime bounds how long Close waits for the servers.
const closeTime = 5 * time.Second

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
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	m := start(cfg)
	if _, err := m.await(ctx); err != nil {
		if last := m.dialer.lastFailure(); last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
		m.shut() // the teardown goes on in the background
		return nil, fmt.Errorf("session: connect to %q: %w", servers, err)
	}
	return m, nil
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
	return start(cfg), nil
}

// start returns a manager that has begun to open a session.
func start(cfg *config) *Manager {
	m := &Manager{cfg: cfg, stopped: make(chan struct{}), changed: make(chan struct{})}
	m.open, m.shut = context.WithCancel(context.Background())
	cfg.trace.calls.workers.init(m.open.Done()) // before anything calls a function of the user
	m.dialer = newDialer(cfg)
	for _, f := range cfg.states {
		m.subs.add(f, nil)
	}
	m.dialer.logbook.Begin()
	go m.run()
	return m
}

// Session returns the live session. If there is none, it waits for one. It fails when ctx ends, with an
// error that matches ctx.Err() and says why there is no connection. It fails with an error that matches
// [ErrClosed] if the manager is closed, with [zk.ErrAuthFailed] for as long as the servers refuse an
// identity, and with [ErrInvalid] for as long as they grant a session timeout that is too short. The
// manager goes on to ask for a session.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	m.made()
	misuse.Context(ctx, "session: Manager.Session")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := m.await(ctx)
	if last := m.dialer.lastFailure(); ctx.Err() != nil && err != nil && last != nil {
		err = fmt.Errorf("%w: %v", err, last) //nolint:errorlint // callers match the end of ctx, and not the last dial
	}
	return s, err
}

func (m *Manager) await(ctx context.Context) (*Session, error) {
	for {
		m.mu.Lock()
		s, state, changed, refused := m.session, m.state, m.changed, m.refused
		m.mu.Unlock()
		switch {
		case state == Closed:
			return nil, ErrClosed
		case s != nil && s.Err() == nil:
			return s, nil
		case refused != nil:
			return nil, refused
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// State returns the manager's state. If the session's clock has run out by the time of the call,
// the state is Lost.
func (m *Manager) State() State {
	m.made()
	m.mu.Lock()
	state, s := m.state, m.session
	m.mu.Unlock()
	if s != nil && state != Closed && s.Err() != nil {
		return Lost
	}
	return state
}

// Subscribe calls f with each change of state, in order and one at a time, from a goroutine of its own.
// The first change tells the present state: its From and To are both that state. f may block, and may call
// anything in this package. If f ends its goroutine by runtime.Goexit, another goroutine goes on with the
// next change. cancel ends the subscription without waiting for f. The subscription also ends after the
// change to Closed. A nil f panics.
func (m *Manager) Subscribe(f func(Change)) (cancel func()) {
	m.made()
	if f == nil {
		panic("session: Manager.Subscribe: nil function")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := Change{From: m.state, To: m.state, At: time.Now()}
	if m.session != nil {
		now.Session = m.session.ID()
	}
	cancel = m.subs.add(f, &now)
	if m.state == Closed {
		m.subs.finish()
	}
	return cancel
}

// Close gives up everything held under the session, closes the session on the servers, and ends
// all goroutines of the manager. Waiting calls return [ErrClosed]. Close takes at most 5 seconds.
// If no server has confirmed the end by then, Close returns an error, and the servers free the
// locks when they expire the session. Close may be called more than once and always returns the
// same error.
func (m *Manager) Close() error {
	m.made()
	m.shut()
	<-m.stopped
	m.cfg.lines.Flush(flushTime)
	return m.closeErr
}

// run opens one session after another until the manager is closed.
func (m *Manager) run() {
	defer close(m.stopped)
	var teardowns errgroup.Group
	asking, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	learn := sync.OnceFunc(func() {
		m.dialer.attempts.Go(func() { m.dialer.learnTick(m.open) })
	})
	wait := m.cfg.retry()
	for m.open.Err() == nil {
		s := newSession(m.cfg, m.dialer, m.onSession)
		err := m.begin(s)
		if err == nil {
			learn()
			err = m.serve(s)
			wait.Reset()
		} else if m.open.Err() == nil {
			m.note(s, err)
		}
		_ = s.mark(err)
		teardowns.Go(func() error { return s.teardown(asking) })
		_ = pause(m.open, untiring(wait))
	}
	m.transition(Closed, nil, ErrClosed)
	limit := time.AfterFunc(closeTime, giveUp)
	defer limit.Stop()
	m.closeErr = teardowns.Wait()
	m.dialer.close(asking)
	m.subs.finish()
}

// begin waits until the servers have opened a session and accepted its identities. If it fails, the session is of no use.
func (m *Manager) begin(s *Session) error {
	select {
	case <-s.live:
		return nil
	case <-s.Done(): // the first answer was that there is no session
		return s.Err()
	case <-m.open.Done():
		return closedError(s.ID())
	}
}

// serve publishes a session, and returns the cause of its end.
func (m *Manager) serve(s *Session) error {
	m.publish(s)
	select {
	case <-s.Done():
		err := s.Err()
		m.transition(Lost, s, err)
		m.transition(Connecting, nil, nil)
		return err
	case <-m.open.Done():
		err := closedError(s.ID())
		_ = s.mark(err)
		m.transition(Closed, s, err)
		return err
	}
}

// publish makes a session the live one. Its connection may be lost already, because onSession
// ignores sessions that are not published.
func (m *Manager) publish(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = nil
	m.transitionLocked(Connected, s, nil)
	if !s.isConnected() {
		m.transitionLocked(Suspended, s, s.linkFailure())
	}
}

// onSession takes the connections and disconnections of a session.
func (m *Manager) onSession(s *Session, state State, why error) {
	m.mu.Lock()
	if m.session == s {
		m.transitionLocked(state, s, why)
	}
	m.mu.Unlock()
	if why != nil {
		m.dialer.failed(why)
	}
}

// note keeps the reason why a session could not be opened, for the log and for the calls that wait
// for one.
func (m *Manager) note(s *Session, err error) {
	m.cfg.log.Debug("cannot open a zookeeper session", "err", err)
	var end *endError
	if errors.As(err, &end) {
		step := logbook.StepHandshake
		if errors.Is(err, zk.ErrAuthFailed) {
			step = logbook.StepIdentity
		}
		m.dialer.record(&logbook.Failure{Step: step, To: s.server(), Err: end.why})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var r *refusal
	var short *shortLease
	switch {
	case errors.As(err, &r):
		m.refused = r
	case errors.As(err, &short):
		m.refused = short
	default:
		return
	}
	m.wakeLocked()
}

// transition is transitionLocked for callers without the lock.
func (m *Manager) transition(to State, s *Session, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transitionLocked(to, s, why)
}

// transitionLocked is the only function that changes the state.
func (m *Manager) transitionLocked(to State, s *Session, why error) {
	if !canFollow(m.state, to) {
		return
	}
	c := Change{From: m.state, To: to, Err: why, At: time.Now()}
	if s != nil {
		c.Session = s.ID()
	}
	m.state, m.session = to, s
	m.subs.publish(c)
	logChange(m.dialer.logbook, c, s)
	m.wakeLocked()
}

// logChange has the logbook say what has changed. s is nil if the change is to Connecting, and it may be nil if
// the change is to Closed.
func logChange(b *logbook.Logbook, c Change, s *Session) {
	var id string
	if c.Session != 0 {
		id = sessionID(c.Session)
	}
	switch c.To {
	case Connected:
		b.Connected(id, s.server(), logbook.Terms{Timeout: s.Timeout(), Margin: s.keptMargin()})
	case Suspended:
		b.Suspended(id, s.server(), reasonOf(c.Err), max(0, s.remaining()))
	case Lost:
		b.Lost(id, s.server(), reasonOf(c.Err))
	case Closed:
		b.Closed(id)
	}
}

func (m *Manager) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}
