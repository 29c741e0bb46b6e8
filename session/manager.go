package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Manager keeps a session open: it connects, and opens another session when one is lost. Make one
// Manager per process and ensemble with [Connect]. All methods may be called by any number of
// goroutines at once. They panic if Connect has not made the Manager.
type Manager struct {
	cfg    *config
	dialer *dialer

	open    context.Context // ended by Close
	shut    context.CancelFunc
	stopped chan struct{} // closed when all goroutines have ended

	closeErr error // no server has confirmed the end of a session; read once stopped is closed

	subs subscribers

	mu      sync.Mutex
	state   State
	session *Session      // the live one; nil while there is none
	changed chan struct{} // closed and replaced whenever state or session change
	refused error         // the servers refused an identity when the last session was opened; else nil
}

// made returns m. It panics if m is nil or a zero value.
func (m *Manager) made() *Manager {
	if m == nil || m.cfg == nil {
		panic("session: Manager not made by Connect")
	}
	return m
}

// closeTime bounds how long Close waits for the servers.
const closeTime = 5 * time.Second

// openPatience is how long a zk.Conn may take for its first session. Then a new zk.Conn replaces
// it, because a zk.Conn can hang forever. Nothing is lost by that. If a zk.Conn hangs later, it
// is replaced with its session, when the clock runs out.
const openPatience = time.Minute

// Connect opens a session with the servers of a connect string such as "h1:2181,h2:2181/chroot".
// It consists of hosts with or without ports (default 2181), with IPv6 addresses in brackets, and
// an optional path. All nodes lie below that path, which is created when needed.
//
// Connect returns when a session is live. It fails when ctx has ended, with an error that matches
// ctx.Err() and says why there was no session. It fails at once with an error that matches
// [ErrInvalid] if servers or an option cannot work, or [zk.ErrAuthFailed] if the servers refuse
// an identity. ctx bounds Connect only. Close ends the manager.
func Connect(ctx context.Context, servers string, opts ...Option) (*Manager, error) {
	misuse.Context(ctx, "session: Connect")
	cfg, err := newConfig(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	m := &Manager{
		cfg:     cfg,
		dialer:  newDialer(cfg),
		stopped: make(chan struct{}),
		changed: make(chan struct{}),
	}
	m.open, m.shut = context.WithCancel(context.Background())
	m.subs.add(m.logChange, nil)
	if cfg.trace.State != nil {
		m.subs.add(cfg.trace.State, nil)
	}
	go m.run()
	if _, err := m.await(ctx); err != nil {
		if last := m.dialer.lastFailure(); last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
		m.shut() // the teardown goes on in the background
		return nil, fmt.Errorf("session: connect to %q: %w", servers, err)
	}
	return m, nil
}

// Session returns the live session. If there is none, it waits for one. It fails when ctx ends,
// with an error that matches ctx.Err() and says why there is no connection. It fails with an
// error that matches [ErrClosed] if the manager is closed, and with [zk.ErrAuthFailed] for as
// long as the servers refuse an identity. The manager goes on presenting that identity.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	m.made()
	misuse.Context(ctx, "session: Manager.Session")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := m.await(ctx)
	if last := m.dialer.lastFailure(); ctx.Err() != nil && err != nil && last != nil {
		err = fmt.Errorf("%w (%v)", err, last)
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

// Subscribe calls f with each change of state, in order and one at a time, from a goroutine of
// its own. The first change tells the present state: its From and To are both that state. f may
// block, and may call anything in this package. cancel ends the subscription without waiting for
// f. The subscription also ends after the change to Closed. A nil f panics.
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
	return m.closeErr
}

// run opens one session after another until the manager is closed.
func (m *Manager) run() {
	defer close(m.stopped)
	var teardowns errgroup.Group
	asking, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	learn := sync.OnceFunc(func() {
		teardowns.Go(func() error { m.dialer.learnTick(m.open); return nil })
	})
	wait := m.cfg.retry()
	for m.open.Err() == nil {
		s, err := m.begin()
		if err == nil {
			learn()
			err = m.serve(s)
			wait.Reset()
		} else if m.open.Err() == nil {
			m.note(err)
		}
		if s != nil {
			s.end(err)
			teardowns.Go(func() error { return s.teardown(asking) })
		}
		_ = pause(m.open, untiring(wait))
	}
	m.transition(Closed, nil, ErrClosed)
	limit := time.AfterFunc(closeTime, giveUp)
	defer limit.Stop()
	m.closeErr = teardowns.Wait()
	m.dialer.close(asking)
	m.subs.finish()
}

// begin opens a session and returns it once the servers have accepted its identities. If begin
// returns a session with an error, the caller must tear the session down.
func (m *Manager) begin() (*Session, error) {
	s, err := newSession(m.cfg, m.dialer, m.onSession)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(openPatience)
	defer patience.Stop()
	select {
	case <-s.live:
	case <-s.Done(): // the first answer was that there is no session
		return s, s.Err()
	case <-m.open.Done():
		return s, closedError(s.ID())
	case <-patience.C:
		return s, fmt.Errorf("no session within %v", openPatience)
	}
	if err := s.ready(m.open); err != nil { // zk.Conn may not have seen the greeting yet
		return s, err
	}
	return s, nil
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
		s.end(err)
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
		m.transitionLocked(Suspended, s, nil)
	}
}

// onSession takes the connections and disconnections of a session.
func (m *Manager) onSession(s *Session, state State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == s {
		m.transitionLocked(state, s, nil)
	}
}

// note keeps the reason why no session could be opened, for the calls that wait for one.
func (m *Manager) note(err error) {
	m.cfg.log.Warn("cannot open a zookeeper session", "err", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	var r *refusal
	if errors.As(err, &r) {
		m.refused = r
		m.wakeLocked()
	}
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
	m.wakeLocked()
}

func (m *Manager) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Manager) logChange(c Change) {
	log := m.cfg.log.Info
	if c.To == Lost {
		log = m.cfg.log.Warn
	}
	log("zookeeper session state changed", "state", c.To.String(), "from", c.From.String(),
		"session", fmt.Sprintf("0x%x", uint64(c.Session)), "cause", c.Err)
}
