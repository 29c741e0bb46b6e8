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

// Manager keeps a session open for as long as the process wants one: it connects,
// and when the session is lost opens another. Make one per process and ensemble with
// [Connect]. All methods may be called by any number of goroutines at once. They panic if
// Connect has not made the Manager.
type Manager struct {
	cfg    *config
	dialer *dialer

	open    context.Context // ended by Close
	shut    context.CancelFunc
	stopped chan struct{} // closed when all goroutines have ended

	closeErr error // of sessions that no server has confirmed the end of; read once stopped

	subs subscribers

	mu      sync.Mutex
	state   State
	session *Session      // the live one; nil while there is none
	changed chan struct{} // closed and replaced whenever state or session change
	refused error         // an identity, when the last session was opened; nil if none was
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

// openPatience is how long a zk.Conn may be without its first session before it is
// replaced by a new one: it can hang for good. Nothing is lost then. A Conn that hangs
// later is replaced with its session, when the clock runs out.
const openPatience = time.Minute

// Connect opens a session with the servers of a connect string, such as
// "h1:2181,h2:2181/chroot": hosts with or without ports (2181), IPv6 addresses in
// brackets, and a path below which all nodes lie, which is made when needed.
//
// It returns when a session is live; when ctx has ended, with an error that matches
// ctx.Err() and says what kept it; or at once, with an error that matches
// [ErrInvalid], when servers or an option cannot work, or [zk.ErrAuthFailed], when the
// servers refuse an identity. ctx bounds connecting only: Close ends the manager.
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
		m.shut() // what there is to tear down goes on behind
		return nil, fmt.Errorf("session: connect to %q: %w", servers, err)
	}
	return m, nil
}

// Session returns the live session, and waits for one where there is none. It fails with
// an error that matches ctx.Err() when ctx ends, and says what keeps it from connecting;
// one that matches [ErrClosed] when the manager is closed; and, for as long as the servers
// refuse an identity, which the manager goes on to present, [zk.ErrAuthFailed].
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

// State returns where the manager stands. A session whose clock has run out is Lost,
// by the time of the call.
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

// Subscribe calls f with each change of state, in order and one at a time, from a
// goroutine of its own, beginning with one that says the present state (From and To
// are that state). f may take its time, and may call whatever it likes. The returned
// function ends it without waiting; it ends by itself after Closed. A nil f panics.
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

// Close gives up everything held under the session, closes it on the servers, and
// ends all goroutines of the manager. Calls that wait return [ErrClosed]. It takes 5
// seconds at most; when the servers could not be told by then, it returns an error,
// and what was held is freed when they expire the session. Close may be called more
// than once, and always returns the same.
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

// begin opens a session and returns it, once its identities are taken. Where it fails with
// a session, that is still to be torn down.
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
	if err := s.ready(m.open); err != nil { // the greeting is here, but zk.Conn may not be ready
		return s, err
	}
	return s, nil
}

// serve publishes a session, and returns why it ended.
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

// publish makes a session the live one. Its connection may be gone already, and sessions
// are heard only once they are published.
func (m *Manager) publish(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = nil
	m.transitionLocked(Connected, s, nil)
	if !s.isConnected() {
		m.transitionLocked(Suspended, s, nil)
	}
}

// onSession is told by sessions of each connection and disconnection.
func (m *Manager) onSession(s *Session, state State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.session == s {
		m.transitionLocked(state, s, nil)
	}
}

// note keeps why no session could be opened, for those who wait for one.
func (m *Manager) note(err error) {
	m.cfg.log.Warn("zookeeper session not opened", "err", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	var r *refusal
	if errors.As(err, &r) {
		m.refused = r
		m.wakeLocked()
	}
}

// transition is the only way the state changes.
func (m *Manager) transition(to State, s *Session, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transitionLocked(to, s, why)
}

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
	log("zookeeper session", "state", c.To.String(), "from", c.From.String(),
		"session", fmt.Sprintf("0x%x", uint64(c.Session)), "cause", c.Err)
}
