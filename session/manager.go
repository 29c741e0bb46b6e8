package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Manager keeps a session open: it connects, and opens another session when one is lost. Make one Manager per process
// and ensemble with [Connect] or [Open]. Methods panic if neither of the two has made the Manager.
type Manager struct {
	cfg    *config
	dialer *dial.Dialer
	tick   tick
	trace  traces
	outage outage
	closer closer
	losses lane // hooks of losses, in order

	open     context.Context // ended by Close
	shut     context.CancelFunc
	stopped  chan struct{} // closed when the manager has ended
	closeErr error         // no server has confirmed the end of a session; read once stopped is closed

	mu      sync.Mutex
	state   State
	session *Session      // the live one; nil while there is none
	changed chan struct{} // closed and replaced whenever state or session change
	refused error         // why the last session could not be used although it was opened; else nil
	subs    map[*subscriber]struct{}
}

const (
	// closeTime bounds how long Close waits for the servers. With what it waits for functions of the program, it takes
	// 5 s.
	closeTime = 5*time.Second - 2*flushTime
	// flushTime bounds how long Close waits for functions of the program that do not return, and for the log.
	flushTime = 100 * time.Millisecond
	// mostLosses bounds the losses that wait for a hook that blocks.
	mostLosses = 65_536
	// notableSilence is how long a silence is that Status mentions.
	notableSilence = time.Second
)

// Connect opens a session with the servers of a connect string such as "h1:2181,h2:2181/chroot": hosts with or without
// ports (default 2181), with IPv6 addresses in brackets, and an optional path. All nodes lie below that path, which is
// created when needed.
//
// Connect returns when a session is live. It fails when ctx has ended, with an error that matches ctx.Err() and says
// why there was no session. It fails at once with [ErrInvalid] if servers or an option cannot work, or the servers
// grant a session timeout that is too short (see [WithMargin]), and with [zk.ErrAuthFailed] if they refuse an identity.
// ctx bounds Connect only.
func Connect(ctx context.Context, servers string, opts ...Option) (*Manager, error) {
	misuse.Context(ctx, "session: Connect")
	cfg, err := newConfig(servers, opts)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	m := start(cfg)
	if _, err := m.await(ctx); err != nil {
		if last := m.outage.failure(); last != nil {
			err = fmt.Errorf("%w: %w", err, last)
		}
		m.shut() // the rest goes on in the background
		return nil, fmt.Errorf("session: connect to %q: %w", servers, err)
	}
	return m, nil
}

// Open is Connect for programs that start without ZooKeeper. It does not wait, and fails only if servers or an option
// cannot work, with an error that matches [ErrInvalid]. The manager is in state [Connecting], and tries until a session
// is live. [Manager.Session] and the locks wait for that, and until then the log says why there is none: see
// [WithLogger].
func Open(servers string, opts ...Option) (*Manager, error) {
	cfg, err := newConfig(servers, opts)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return start(cfg), nil
}

func start(cfg *config) *Manager {
	m := &Manager{
		cfg: cfg, tick: tick{told: cfg.tick}, stopped: make(chan struct{}), changed: make(chan struct{}),
		subs: make(map[*subscriber]struct{}),
	}
	m.open, m.shut = context.WithCancel(context.Background())
	m.dialer = dial.New(dial.Config{
		Servers: cfg.servers, Resolve: cfg.resolve, Dial: cfg.dial, TLS: cfg.tls, Timeout: cfg.timeout, Waits: cfg.waits,
	})
	m.outage.cfg, m.outage.unresolved = cfg, m.dialer.Unresolved
	m.closer.init(m)
	m.trace.now.Store(new(Trace))
	for _, t := range cfg.traces {
		m.trace.add(t)
		if t.State != nil {
			m.subs[&subscriber{f: t.State}] = struct{}{}
		}
	}
	go m.run()
	return m
}

func (m *Manager) check() *Manager {
	if m == nil || m.cfg == nil {
		panic("session: Manager not made by Connect or Open")
	}
	return m
}

// Session returns the live session, or waits for one. It fails when ctx ends, with an error that matches ctx.Err() and
// says why there is no connection. Otherwise it fails as Connect does, for as long as the servers refuse, or with
// [ErrClosed] if the manager is closed. The manager goes on to ask for a session.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	misuse.Context(ctx, "session: Manager.Session")
	m.check()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := m.await(ctx)
	if err != nil && ctx.Err() != nil {
		if last := m.outage.failure(); last != nil {
			err = fmt.Errorf("%w: %v", err, last) //nolint:errorlint // callers match the end of ctx, and not the last dial
		}
	}
	return s, err
}

func (m *Manager) await(ctx context.Context) (*Session, error) {
	for {
		m.mu.Lock()
		s, state, changed, refused := m.session, m.state, m.changed, m.refused
		m.mu.Unlock()
		switch {
		case state == Closed || m.open.Err() != nil:
			return nil, ErrClosed
		case s != nil && s.Err() == nil:
			return s, nil
		case refused != nil:
			return nil, refused
		}
		select {
		case <-changed:
		case <-m.open.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// State returns the manager's state. If the session's clock has run out by the time of the call, the state is Lost.
func (m *Manager) State() State {
	state, _ := m.check().present()
	return state
}

// present returns the state and the session, which may be nil or have ended.
func (m *Manager) present() (State, *Session) {
	m.mu.Lock()
	state, s := m.state, m.session
	m.mu.Unlock()
	if s != nil && state != Closed && s.Err() != nil {
		return Lost, s
	}
	return state, s
}

// Subscribe calls f with each change of state, in order, from a goroutine of its own. In the first change From and To
// are the present state, and the change to Closed is the last. f may block, and may call anything in this package.
// cancel ends the subscription without waiting for f. A nil f panics.
func (m *Manager) Subscribe(f func(Change)) (cancel func()) {
	m.check()
	if f == nil {
		panic("session: Manager.Subscribe: nil function")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := Change{From: m.state, To: m.state, At: time.Now()}
	if m.session != nil {
		now.Session = m.session.ID()
	}
	s := &subscriber{f: f}
	s.put(now)
	if m.state != Closed { // otherwise no more will come
		m.subs[s] = struct{}{}
	}
	return func() {
		s.over.Store(true)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.subs, s)
	}
}

// Status is what a Manager knows of its connection at a moment.
type Status struct {
	State   State
	Servers string        // the connect string
	Session *Session      // the live one; nil if there is none
	Timeout time.Duration // the session timeout that the manager asks the servers for
	Server  string        // of the present or last connection, as in the connect string; "" if there is no session
	Failure error         // why there is no connection, or which server is silent for how long; nil if nothing is known
}

// Status returns what the manager knows of its connection. It sends nothing, and waits for nothing.
func (m *Manager) Status() Status {
	state, s := m.check().present()
	out := Status{State: state, Servers: m.cfg.named, Timeout: m.cfg.timeout}
	if s != nil && state != Closed {
		out.Server = s.server().Name()
		if s.Err() == nil {
			out.Session = s
		}
	}
	switch state {
	case Connected:
		if l := s.link(); l != nil {
			if noBytes, _ := l.conn.Silence(clock.Now()); noBytes >= notableSilence {
				out.Failure = fmt.Errorf("no answer from %v for %v", l.to, noBytes.Round(100*time.Millisecond))
			}
		}
	case Connecting, Suspended, Lost:
		m.mu.Lock()
		refused := m.refused
		m.mu.Unlock()
		out.Failure = cmp.Or(refused, m.outage.failure())
	}
	return out
}

// AddTrace adds hooks behind those of [WithTrace], for a package that is given a manager and watches its locks. They
// are not told how a thing ends that had begun before. The first call of a State hook tells the present state.
func (m *Manager) AddTrace(t Trace) {
	m.check().trace.add(t)
	if t.State != nil {
		m.Subscribe(t.State)
	}
}

// Trace returns the hooks to call at present, for packages that make locks. It is never nil, and nobody may change it.
func (m *Manager) Trace() *Trace { return m.check().trace.now.Load() }

// TellLoss has a goroutine of the manager call f, behind the functions of earlier calls. It returns at once. Packages
// that make locks call the hooks of a loss by it. If f blocks, a bounded number of calls waits, and further ones are
// dropped, which the log tells. A nil f panics.
func (m *Manager) TellLoss(f func()) {
	m.check()
	if f == nil {
		panic("session: Manager.TellLoss: nil function")
	}
	if !m.losses.add(mostLosses, f) {
		m.cfg.log.Error("a hook of a lost lock blocks, so a loss is not told")
	}
}

// Logger returns the logger of [WithLogger], behind the queue that all lines go through.
func (m *Manager) Logger() *slog.Logger { return m.check().cfg.log }

// Backoff returns the bounds of the waits between tries: those of [WithBackoff], or the default.
func (m *Manager) Backoff() (first, most time.Duration) {
	return m.check().cfg.waits.First, m.cfg.waits.Most
}

// MaxNodes returns the number of nodes of [WithNodeLimits], or the default.
func (m *Manager) MaxNodes() int { return m.check().cfg.maxNodes }

// Chroot returns the path of the connect string below which all nodes lie, or "/" if it has none.
func (m *Manager) Chroot() string { return m.check().cfg.outward("/") }

// Close gives up everything held under the session, closes the session on the servers, and ends all goroutines of the
// manager. Waiting calls return [ErrClosed]. Close takes at most 5 seconds. If no server has confirmed the end by then,
// it returns an error, and the servers free the locks when they expire the session. Further calls return the same
// error.
func (m *Manager) Close() error {
	m.check().shut()
	<-m.stopped
	m.cfg.lines.flush(flushTime)
	return m.closeErr
}

// mayFollow has the states that each state can change to.
var mayFollow = map[State][]State{
	Connecting: {Connected, Closed},
	Connected:  {Suspended, Lost, Closed},
	Suspended:  {Connected, Lost, Closed},
	Lost:       {Connecting, Closed},
}

// transition is the only function that changes the state. It refuses late news of a session that is gone.
func (m *Manager) transition(to State, s *Session, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !slices.Contains(mayFollow[m.state], to):
		return
	case to == Connected && s.Err() != nil, to == Suspended && s != m.session: // the loop can be at the next session already
		return
	}
	c := Change{From: m.state, To: to, Err: why, At: time.Now()}
	if s != nil {
		c.Session = s.ID()
	}
	m.state, m.session = to, s
	if to == Connected {
		m.refused = nil
	}
	for one := range m.subs {
		one.put(c)
	}
	if to == Closed { // the last change
		clear(m.subs)
	}
	m.wakeLocked()
}

func (m *Manager) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// unusable notes why a session that the servers have opened is of no use.
func (m *Manager) unusable(s *Session, err error) {
	why := reasonOf(err)
	if !errors.Is(why, zk.ErrAuthFailed) && !errors.Is(why, ErrInvalid) { // the lease is too short
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	level := slog.LevelWarn
	if m.refused != nil && m.refused.Error() == why.Error() { // the log has this
		level = slog.LevelDebug
	}
	m.cfg.log.Log(context.Background(), level, "zookeeper session cannot be used", "server", s.server().String(), "cause", why)
	m.refused = why
	m.wakeLocked()
}
