package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"
)

// Session is exactly one ZooKeeper session. It is handed out by
// [Manager.Session] once live, and ends once and for all.
//
// All methods may be called by any number of goroutines at once.
type Session struct {
	cfg    *config
	dialer *dialer
	conn   *zk.Conn
	gone   <-chan zk.Event // closed when the goroutines of conn have ended
	clock  *clock
	report func(*Session, State) // tells the manager; must not block

	life    context.Context // ends with the session
	endLife context.CancelFunc
	work    workers // that end with the session

	watches watches
	nodes   nodes
	claims  claims
	replies *semaphore.Weighted // to requests that zk.Conn must not be closed under

	live        chan struct{} // closed when a server has first greeted and taken the identities
	reconnected chan struct{} // poked at each connection; room for one

	mu       sync.Mutex
	greeting greeting // the first, with the shortest timeout since
	server   string   // that the connection goes to, or last went to
	peer     string   // its address
	wire     *wire    // the present or last connection
	up       chan struct{}
	upClosed bool  // up is closed: there is a connection with the session
	isLive   bool  // live is closed
	closedOK bool  // the server has confirmed closeSession, or the expiry
	err      error // why the session ended; nil while live
}

// newSession begins to open a session. The manager is told by report of each
// connection and disconnection.
func newSession(cfg *config, d *dialer, report func(*Session, State)) (*Session, error) {
	s := &Session{
		cfg:    cfg,
		dialer: d,
		clock:  newClock(time.Now()),
		report: report,

		replies: semaphore.NewWeighted(allReplies),

		live: make(chan struct{}),

		reconnected: make(chan struct{}, 1),
		up:          make(chan struct{}),
	}
	s.life, s.endLife = context.WithCancel(context.Background())
	s.nodes.limit = cfg.maxNodes
	s.work.init(s.life.Done())
	s.watches.init()
	// zk.Conn hides the timeout that was negotiated, and asks for that reduced one
	// in every later session: each session gets a Conn of its own. Its buffers are
	// 1.5 MB each unless told otherwise, and what one write may hold is bounded by
	// the smaller size here (see maxData).
	var err error
	s.conn, s.gone, err = zk.Connect([]string{"zookeeper"}, cfg.timeout,
		zk.WithDialer(s.dial),
		zk.WithHostProvider(provider{func() bool { return s.life.Err() != nil }}),
		zk.WithEventCallback(s.onEvent),
		zk.WithMaxConnBufferSize(connBuffer),
		zk.WithLogger(zkLogger{cfg.log}),
		zk.WithLogInfo(false))
	if err != nil {
		s.endLife()
		return nil, err
	}
	return s, nil
}

const connBuffer = 256 << 10

// dial is called by zk.Conn, from its one loop.
func (s *Session) dial(string, string, time.Duration) (net.Conn, error) {
	c, t, err := s.dialer.dial(s.life)
	if err != nil {
		return nil, err
	}
	w := newWire(c, s, s.cfg.connectTimeout, func() time.Duration { return s.Timeout() / 2 })
	w.identities = identities{list: s.cfg.auths, accepted: s.accepted, refused: s.refused}
	if err := s.setWire(w, t); err != nil {
		c.Close()
		return nil, err
	}
	return w, nil
}

func (s *Session) setWire(w *wire, t target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.wire, s.server, s.peer = w, t.name(), t.addr
	}
	return s.err
}

// ID returns the session id that ZooKeeper gave.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.session
}

// Timeout returns the session timeout as negotiated with the server.
func (s *Session) Timeout() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.greeting.timeoutMillis) * time.Millisecond
}

// Remaining returns how long holds are certain with no further word from the
// server, computed now; 0 once the session has ended.
func (s *Session) Remaining() time.Duration {
	if s.Err() != nil {
		return 0
	}
	return max(0, s.clock.remaining(time.Now()))
}

// Done returns a channel that is closed when the session has ended: lost, or
// closed with its manager. [Session.Err] may know earlier.
func (s *Session) Done() <-chan struct{} { return s.life.Done() }

// AfterEnd has f called, in a goroutine of its own, when the session has ended: at once if it
// has. The returned function takes that back.
func (s *Session) AfterEnd(f func()) (stop func()) {
	cancel := context.AfterFunc(s.life, f)
	return func() { cancel() }
}

// Err returns nil while the session is certain, and after that an error that
// matches [ErrLost] or [ErrClosed]. It goes by the clock at the time of the call,
// not by whether some timer has run.
func (s *Session) Err() error {
	s.mu.Lock()
	err, id := s.err, s.greeting.session
	s.mu.Unlock()
	if err == nil && id != 0 && s.clock.remaining(time.Now()) <= 0 {
		return s.end(lossError(id, lossClock))
	}
	return err
}

// isConnected reports whether there is a connection that has the session.
func (s *Session) isConnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upClosed
}

// end is the only way a session ends. The first cause stays; it is returned.
func (s *Session) end(cause error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = cause
	}
	cause = s.err
	s.mu.Unlock()
	if first {
		s.endLife()
		s.watches.breakAll()
	}
	return cause
}

// lose ends the session for a reason that the server or the network gave.
func (s *Session) lose(why lossReason) { s.end(lossError(s.ID(), why)) }

// ready waits for a connection. It returns nil when there is one, the cause when
// the session has ended, or ctx.Err().
func (s *Session) ready(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		up := s.up
		s.mu.Unlock()
		select {
		case <-up:
			if s.isConnected() {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
		}
	}
}

// onEvent is called by zk.Conn, in order, from one goroutine at a time. Doing the
// work here and not on its channel of six events loses none; it never blocks.
func (s *Session) onEvent(e zk.Event) {
	if e.Type != zk.EventSession {
		s.watches.event(e)
		return
	}
	switch e.State {
	case zk.StateHasSession:
		s.setConnected(true)
	case zk.StateDisconnected:
		s.setConnected(false)
	case zk.StateExpired:
		// zk.Conn would go on to open a new session and send in it what was
		// queued for this one. Once ended, it gets no connection any more.
		s.lose(lossExpired)
	}
}

func (s *Session) setConnected(up bool) {
	s.mu.Lock()
	changed := s.upClosed != up && s.err == nil
	if s.upClosed != up {
		s.upClosed = up
		if up {
			close(s.up)
		} else {
			s.up = make(chan struct{})
		}
	}
	s.mu.Unlock()
	if !up {
		// No watch is trusted across a reconnect: events may have come and gone.
		s.watches.breakAll()
	}
	switch {
	case !changed:
	case up:
		poke(s.reconnected)
		s.report(s, Connected)
	case s.cfg.lossOnSuspend:
		s.lose(lossSuspend)
	default:
		s.report(s, Suspended)
	}
}

// greeted implements wireEvents. The id after every handshake is compared: a session
// change is a loss.
func (s *Session) greeted(g greeting, sent time.Time) error {
	if err := s.cfg.believe(g); err != nil {
		return err
	}
	if s.begun(g, sent) {
		if len(s.cfg.auths) == 0 {
			s.goLive()
		}
		return nil
	}
	if s.ID() != g.session {
		s.lose(lossReplaced)
		return fmt.Errorf("%w: 0x%x", errReplaced, uint64(g.session))
	}
	s.shorten(g.timeoutMillis)
	s.confirm(sent, proofLeader)
	return s.Err() // it may have come back too late
}

// accepted is told that a server has taken all identities.
func (s *Session) accepted() { s.goLive() }

// refused is told that a server has not. Without its identities the session is worth
// nothing, and a server that takes them can be long in coming: it ends, as a loss.
func (s *Session) refused(scheme string) { s.end(lossError(s.ID(), &refusal{scheme})) }

func (s *Session) goLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isLive {
		s.isLive = true
		close(s.live)
	}
}

// shorten takes a timeout that a later greeting grants, if it is less: a server that was
// started again can have another limit, and expires the session by it from now on.
func (s *Session) shorten(timeoutMillis int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timeoutMillis < s.greeting.timeoutMillis {
		s.greeting.timeoutMillis = timeoutMillis
		s.clock.setLease(lease(s.cfg, timeoutMillis))
	}
}

// begun takes the first greeting, and reports whether this was it.
func (s *Session) begun(g greeting, sent time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.greeting.session != 0 {
		return false
	}
	s.clock.confirm(sent) // a new session is agreed upon by a quorum
	s.clock.setLease(lease(s.cfg, g.timeoutMillis))
	s.greeting = g
	return true
}

// lease returns for how long an answer is good.
func lease(cfg *config, timeoutMillis int32) time.Duration {
	timeout := time.Duration(timeoutMillis) * time.Millisecond
	return timeout - margin(cfg.margin, timeout)
}

// confirmed implements wireEvents. An answer that comes when the clock has run out is too
// late: what is lost never comes back.
func (s *Session) confirmed(sent time.Time, p proof) {
	if s.Err() == nil {
		s.dialer.useful.Store(true)
		s.confirm(sent, p)
	}
}

func (s *Session) confirm(sent time.Time, p proof) {
	if s.Err() != nil {
		return
	}
	if p == proofQuorum || !s.nodes.any() {
		s.clock.confirm(sent)
	}
}

// expired implements wireEvents.
func (s *Session) expired() {
	s.sessionClosed()
	s.lose(lossExpired)
}

// sessionClosed implements wireEvents.
func (s *Session) sessionClosed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closedOK = true
}

// broken implements wireEvents.
func (s *Session) broken(why error) {
	if !errors.Is(why, errBadFrame) {
		return // that the session has ended is told elsewhere
	}
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	s.cfg.log.Warn("zookeeper connection given up", "server", server, "err", why)
	s.dialer.distrust(why)
}

// watchesArmed implements wireEvents.
func (s *Session) watchesArmed() bool { return s.watches.anyArmed() }

// watchesRefused implements wireEvents. A server that has too much to do refuses setWatches
// as it does anything else.
func (s *Session) watchesRefused() { s.watches.disarm() }

// zkLogger sends what zk.Conn logs to slog, for debugging.
type zkLogger struct{ log *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
}
