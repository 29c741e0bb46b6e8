package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Manager is that of package session.
type Manager struct {
	cfg    *Config
	dialer *dialer

	open    context.Context // ended by Close
	shut    context.CancelFunc
	stopped chan struct{} // closed when all goroutines have ended

	closeErr error // no server has confirmed the end of a session; read once stopped is closed

	subs subscribers

	warned warned

	mu      sync.Mutex
	state   hooks.State
	session *Session      // the live one; nil while there is none
	changed chan struct{} // closed and replaced whenever state or session change
	refused error         // why the last session could not be used although it was opened; else nil
}

// Made returns m. It panics if m is nil or a zero value.
func (m *Manager) Made() *Manager {
	if m == nil || m.cfg == nil {
		panic("session: Manager not made by Connect or Open")
	}
	return m
}

// flushTime bounds how long Close waits for the log.
const flushTime = 100 * time.Millisecond

// closeTime bounds how long Close waits for the servers.
const closeTime = 5 * time.Second

// Connect starts a manager, and waits for a session. If there is none when ctx ends, or none can be, it shuts the
// manager.
func Connect(ctx context.Context, servers string, cfg *Config) (*Manager, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	m := Start(cfg)
	if _, err := m.await(ctx); err != nil {
		if last := m.dialer.LastFailure(); last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
		m.shut() // the teardown goes on in the background
		return nil, fmt.Errorf("session: connect to %q: %w", servers, err)
	}
	return m, nil
}

// Start returns a manager that has begun to open a session.
func Start(cfg *Config) *Manager {
	m := &Manager{cfg: cfg, stopped: make(chan struct{}), changed: make(chan struct{})}
	m.open, m.shut = context.WithCancel(context.Background())
	cfg.trace.Start(m.open.Done()) // before anything calls a function of the user
	m.dialer = newDialer(cfg)
	for _, f := range cfg.states {
		m.subs.add(f, nil)
	}
	m.dialer.Logbook.Begin()
	go m.run()
	return m
}

// Session is that of session.Manager.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	m.Made()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := m.await(ctx)
	if last := m.dialer.LastFailure(); ctx.Err() != nil && err != nil && last != nil {
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
		case state == hooks.Closed:
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

// State is that of session.Manager.
func (m *Manager) State() hooks.State {
	state, _ := m.present()
	return state
}

// present returns the state, and the session that the manager has at present, or nil. The session may have ended.
func (m *Manager) present() (hooks.State, *Session) {
	m.mu.Lock()
	state, s := m.state, m.session
	m.mu.Unlock()
	if s != nil && state != hooks.Closed && s.Err() != nil {
		return hooks.Lost, s
	}
	return state, s
}

// Subscribe is that of session.Manager.
func (m *Manager) Subscribe(f func(hooks.Change)) (cancel func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := hooks.Change{From: m.state, To: m.state, At: time.Now()}
	if m.session != nil {
		now.Session = m.session.ID()
	}
	return m.subs.add(f, &now)
}

// Close is that of session.Manager.
func (m *Manager) Close() error {
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
		m.dialer.Go(func() { m.dialer.learnTick(m.open) })
	})
	wait := m.cfg.Retry()
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
		_ = rounds.Pause(m.open, rounds.Untiring(wait))
	}
	m.transition(hooks.Closed, nil, ErrClosed)
	limit := time.AfterFunc(closeTime, giveUp)
	defer limit.Stop()
	m.closeErr = teardowns.Wait()
	m.dialer.Close(asking)
}

// begin waits until the servers have opened a session and accepted its identities. If it fails, the session is of no use.
func (m *Manager) begin(s *Session) error {
	select {
	case <-s.live.Wait():
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
		m.transition(hooks.Lost, s, err)
		m.transition(hooks.Connecting, nil, nil)
		return err
	case <-m.open.Done():
		err := closedError(s.ID())
		_ = s.mark(err)
		m.transition(hooks.Closed, s, err)
		return err
	}
}

// publish makes a session the live one. Its connection may be lost already, because onSession
// ignores sessions that are not published.
func (m *Manager) publish(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = nil
	m.transitionLocked(hooks.Connected, s, nil)
	if !s.isConnected() {
		m.transitionLocked(hooks.Suspended, s, s.linkFailure())
	}
}

// onSession takes the connections and disconnections of a session.
func (m *Manager) onSession(s *Session, state hooks.State, why error) {
	m.mu.Lock()
	if m.session == s {
		m.transitionLocked(state, s, why)
	}
	m.mu.Unlock()
	if why != nil {
		m.dialer.Failed(why)
	}
}

// note keeps the reason why a session could not be opened, for the log and for the calls that wait
// for one.
func (m *Manager) note(s *Session, err error) {
	m.cfg.Log.Debug("cannot open a zookeeper session", "err", err)
	step, why := logbook.StepHandshake, reasonOf(err)
	refused := errors.Is(why, zk.ErrAuthFailed)
	if refused {
		step = logbook.StepIdentity
	}
	m.dialer.Record(&logbook.Failure{Step: step, To: s.server(), Err: why})
	if refused || errors.Is(why, ErrInvalid) { // the lease is too short
		m.mu.Lock()
		defer m.mu.Unlock()
		m.refused = why
		m.wakeLocked()
	}
}

// transition is transitionLocked for callers without the lock.
func (m *Manager) transition(to hooks.State, s *Session, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transitionLocked(to, s, why)
}

// transitionLocked is the only function that changes the state.
func (m *Manager) transitionLocked(to hooks.State, s *Session, why error) {
	if !canFollow(m.state, to) {
		return
	}
	c := hooks.Change{From: m.state, To: to, Err: why, At: time.Now()}
	if s != nil {
		c.Session = s.ID()
	}
	m.state, m.session = to, s
	m.subs.publish(c)
	logChange(m.dialer.Logbook, c, s)
	m.wakeLocked()
}

// logChange has the logbook say what has changed. s is nil if the change is to Connecting, and it may be nil if
// the change is to Closed.
func logChange(b *logbook.Logbook, c hooks.Change, s *Session) {
	var id string
	if c.Session != 0 {
		id = sessionID(c.Session)
	}
	switch c.To {
	case hooks.Connected:
		b.Connected(id, s.server(), logbook.Terms{Timeout: s.Timeout(), Margin: s.keptMargin()})
	case hooks.Suspended:
		b.Suspended(id, s.server(), reasonOf(c.Err), max(0, s.remaining()))
	case hooks.Lost:
		b.Lost(id, s.server(), reasonOf(c.Err))
	case hooks.Closed:
		b.Closed(id)
	}
}

func (m *Manager) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}
