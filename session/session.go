package session

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/semaphore"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Session is exactly one ZooKeeper session. It is handed out by
// [Manager.Session] once live, and ends once and for all.
//
// All methods may be called by any number of goroutines at once. They panic if no Manager has
// made the Session.
type Session struct {
	cfg    *config
	dialer *dialer
	conn   *zk.Conn
	gone   <-chan zk.Event // closed when the goroutines of conn have ended
	clock  *wire.Clock
	vigil  vigil
	served atomic.Bool           // a request was answered
	seen   atomic.Int64          // the latest transaction of an answer that came through the leader
	report func(*Session, State) // tells the manager; must not block

	life    context.Context // ends with the session
	endLife context.CancelFunc
	work    workers // that end with the session

	watches watches
	nodes   nodes
	claims  claims
	creates creates
	replies *semaphore.Weighted // to requests that zk.Conn must not be closed under

	live chan struct{} // closed when a server has first greeted and taken the identities

	mu       sync.Mutex
	greeting wire.Greeting // the first, with the shortest timeout since
	server   string        // that the connection goes to, or last went to
	peer     string        // its address
	wire     *wire.Conn    // the present or last connection
	up       chan struct{}
	upClosed bool  // up is closed: there is a connection with the session
	isLive   bool  // live is closed
	closedOK bool  // the server has confirmed closeSession, or the expiry
	err      error // why the session ended; nil while live
}

// made returns s. It panics if s is nil or a zero value.
func (s *Session) made() *Session {
	if s == nil || s.cfg == nil {
		panic("session: Session not made by Manager.Session")
	}
	return s
}

// newSession begins to open a session. The manager is told by report of each
// connection and disconnection.
func newSession(cfg *config, d *dialer, report func(*Session, State)) (*Session, error) {
	s := &Session{
		cfg:    cfg,
		dialer: d,
		clock:  wire.NewClock(wire.Now()),
		report: report,

		replies: semaphore.NewWeighted(allReplies),

		live: make(chan struct{}),
		up:   make(chan struct{}),
	}
	s.life, s.endLife = context.WithCancel(context.Background())
	s.nodes.limit, s.nodes.timeout = cfg.maxNodes, s.Timeout
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
	c, t, err := s.dialer.dial(s.life, s.stake)
	if err != nil {
		return nil, err
	}
	w := wire.New(c, wire.Config{
		Events:         (*events)(s),
		Clock:          s.clock,
		Identities:     s.cfg.auths,
		HandshakeLimit: s.dialer.handshakeLimit(s.stake),
		Half:           s.dialer.tick.half,
	})
	if err := s.setWire(w, t); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// stake returns for how long the session goes on without a connection; 0 where there is
// none yet.
func (s *Session) stake() time.Duration {
	if s.ID() == 0 {
		return 0
	}
	return s.Remaining()
}

func (s *Session) setWire(w *wire.Conn, t target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.wire, s.server, s.peer = w, t.name(), t.addr
	}
	return s.err
}

// ID returns the session id that ZooKeeper gave.
func (s *Session) ID() int64 {
	s.made()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Session
}

// Timeout returns the session timeout as negotiated with the server.
func (s *Session) Timeout() time.Duration {
	s.made()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Timeout()
}

// Remaining returns how long holds are certain with no further word from the
// server, computed now; 0 once the session has ended.
func (s *Session) Remaining() time.Duration {
	s.made()
	if s.Err() != nil {
		return 0
	}
	return max(0, s.remaining())
}

// Done returns a channel that is closed when the session has ended: lost, or
// closed with its manager. [Session.Err] may know earlier.
func (s *Session) Done() <-chan struct{} { return s.made().life.Done() }

// Err returns nil while the session is certain, and after that an error that
// matches [ErrLost] or [ErrClosed]. It goes by the clock at the time of the call,
// not by whether some timer has run.
func (s *Session) Err() error {
	s.made()
	s.mu.Lock()
	err, id := s.err, s.greeting.Session
	s.mu.Unlock()
	if err == nil && id != 0 && s.remaining() <= 0 {
		return s.end(lossError(id, lossClock))
	}
	return err
}

// remaining asks the clock. What a session that owns nodes has to prove is in package wire.
func (s *Session) remaining() time.Duration {
	return s.clock.Remaining(wire.Now(), s.nodes.has())
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
		s.vigil.stop()
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
			switch {
			case !s.isConnected():
			case !s.stalled():
				return nil
			default:
				// What zk.Conn is given now it keeps, and sends over the next connection,
				// also if nobody waits for it any more.
				_ = pause(ctx, stallLook)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
		}
	}
}

// stallLook is how often ready looks whether the network takes bytes again.
const stallLook = 20 * time.Millisecond

func (s *Session) stalled() bool {
	s.mu.Lock()
	w := s.wire
	s.mu.Unlock()
	return w != nil && w.Stalled(wire.Now())
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
		s.report(s, Connected)
	case s.cfg.lossOnSuspend:
		s.lose(lossSuspend)
	default:
		s.report(s, Suspended)
	}
}

// zkLogger sends what zk.Conn logs to slog, for debugging.
type zkLogger struct{ log *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	if strings.HasPrefix(format, "Xid < 0") {
		return // an answer to a heartbeat, which zk.Conn does not know
	}
	l.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
}
