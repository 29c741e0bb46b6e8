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

// Manager keeps a session open: when one is lost, it opens another. Make one per process and ensemble with [Connect]
// or [Open]. Otherwise its methods panic.
type Manager struct {
	cfg    *config
	dialer *dial.Dialer
	tick   tick
	trace  traces
	outage outage
	closer closer
	losses lane

	open     context.Context
	shut     context.CancelFunc
	stopped  chan struct{}
	closeErr error // read once stopped is closed

	mu      sync.Mutex
	state   State
	session *Session
	changed chan struct{} // closed and replaced whenever state or session change
	refused error         // why the last session is of no use, or nil
	subs    map[*subscriber]struct{}
}

const (
	// closeTime is for servers. With flushTime, Close takes 5 s.
	closeTime = 5*time.Second - 2*flushTime
	// flushTime is how long Close waits for functions of the program, and for the log.
	flushTime      = 100 * time.Millisecond
	mostLosses     = 65_536
	notableSilence = time.Second
)

// Connect opens a session with the servers of a connect string such as "h1:2181,h2:2181/chroot": hosts with or
// without ports (default 2181), with IPv6 addresses in brackets, and an optional path, below which all nodes lie. It
// returns when the session is live. ctx bounds Connect only.
//
// Connect fails when ctx has ended, with an error that matches ctx.Err() and says why there was no session. It fails
// at once with [ErrInvalid] if servers or an option cannot work, or the granted session timeout is too short, and
// with [zk.ErrAuthFailed] if the servers refuse an identity.
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
		m.shut()
		return nil, fmt.Errorf("session: connect to %q: %w", servers, err)
	}
	return m, nil
}

// Open is Connect for programs that start without ZooKeeper. It does not wait, and fails only with [ErrInvalid], if
// servers or an option cannot work.
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
		Servers: cfg.servers, Resolve: cfg.resolve, Dial: cfg.dial, TLS: cfg.tls, Timeout: cfg.patience, Waits: cfg.waits,
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

// Session returns the live session, or waits for one. It fails when ctx ends, with an error that matches ctx.Err()
// and says why there is no connection, with [ErrClosed], and otherwise as Connect does.
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

// State returns the present state, which is Lost as soon as the session's clock has run out. It does not block.
func (m *Manager) State() State {
	state, _ := m.check().present()
	return state
}

func (m *Manager) present() (State, *Session) {
	m.mu.Lock()
	state, s := m.state, m.session
	m.mu.Unlock()
	if s != nil && state != Closed && s.Err() != nil {
		return Lost, s
	}
	return state, s
}

// Subscribe calls f with each change of state, in order, from a goroutine of its own. The first change is to the
// present state, and the one to Closed is the last. f may block. cancel does not wait for f. A nil f panics.
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
	if m.state != Closed {
		m.subs[s] = struct{}{}
	}
	return func() {
		s.over.Store(true)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.subs, s)
	}
}

// Status is what a Manager knows of its connection.
type Status struct {
	State   State
	Servers string
	Session *Session      // the live one, or nil
	Timeout time.Duration // as asked for
	Server  string        // of the present or last connection
	Failure error         // why there is no connection, or no answer; nil if not known
}

// Status returns what the manager knows of its connection. It does not block.
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

// AddTrace adds hooks behind those of [WithTrace]. They do not see the end of what has begun before. The first call
// of a State hook tells the present state.
func (m *Manager) AddTrace(t Trace) {
	m.check().trace.add(t)
	if t.State != nil {
		m.Subscribe(t.State)
	}
}

// Trace returns the hooks to call, for packages that make locks. It is never nil.
func (m *Manager) Trace() *Trace { return m.check().trace.now.Load() }

// TellLoss calls f on a goroutine of the manager, in order, for packages that make locks. It does not block. If f
// blocks, a bounded number of calls waits, and further ones are dropped and logged. A nil f panics.
func (m *Manager) TellLoss(f func()) {
	m.check()
	if f == nil {
		panic("session: Manager.TellLoss: nil function")
	}
	if !m.losses.add(mostLosses, f) {
		m.cfg.log.Error("a hook of a lost lock blocks, so a loss is not told")
	}
}

// Logger returns the logger of [WithLogger], behind a queue, so that it never blocks.
func (m *Manager) Logger() *slog.Logger { return m.check().cfg.log }

// Backoff returns the bounds of [WithBackoff].
func (m *Manager) Backoff() (first, most time.Duration) {
	return m.check().cfg.waits.First, m.cfg.waits.Most
}

// MaxNodes returns the number of nodes of [WithNodeLimits].
func (m *Manager) MaxNodes() int { return m.check().cfg.maxNodes }

// Chroot returns the path of the connect string, or "/" if it has none.
func (m *Manager) Chroot() string { return m.check().cfg.outward("/") }

// Close gives up everything held under the session, closes the session on the servers, and ends all goroutines of the
// manager. Waiting calls return [ErrClosed]. Close takes at most 5 seconds. It returns an error if no server has
// confirmed the end by then: the servers free the locks when the session expires.
func (m *Manager) Close() error {
	m.check().shut()
	<-m.stopped
	m.cfg.lines.flush(flushTime)
	return m.closeErr
}

// Done returns a channel that is closed as soon as Close is called.
func (m *Manager) Done() <-chan struct{} { return m.check().open.Done() }

var mayFollow = map[State][]State{
	Connecting: {Connected, Closed},
	Connected:  {Suspended, Lost, Closed},
	Suspended:  {Connected, Lost, Closed},
	Lost:       {Connecting, Closed},
}

// transition is the only function that changes the state. It ignores late news of an old session.
func (m *Manager) transition(to State, s *Session, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !slices.Contains(mayFollow[m.state], to):
		return
	case to == Connected && s.Err() != nil, to == Suspended && s != m.session: // the loop may be at the next session
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
	if to == Closed {
		clear(m.subs)
	}
	m.wakeLocked()
}

func (m *Manager) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Manager) unusable(s *Session, err error) {
	why := reasonOf(err)
	if !errors.Is(why, zk.ErrAuthFailed) && !errors.Is(why, ErrInvalid) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	level := slog.LevelWarn
	if m.refused != nil && m.refused.Error() == why.Error() { // it is in the log
		level = slog.LevelDebug
	}
	m.cfg.log.Log(context.Background(), level, "zookeeper session cannot be used", "server", s.server().String(), "cause", why)
	m.refused = why
	m.wakeLocked()
}
