package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Session is exactly one ZooKeeper session. [Manager.Session] returns it once it is live. A
// session that has ended stays ended.
//
// All methods may be called by any number of goroutines at once. They panic if no Manager has
// made the Session.
type Session struct {
	cfg    *config
	dialer *dialer
	report func(s *Session, to State, why error) // tells the manager of connections; must not block

	// The session's life. It ends with a call of end, from any side.
	life    context.Context
	endLife context.CancelFunc
	work    workers // goroutines that end with the session

	// How long the session is certain.
	clock    *wire.Clock
	watchdog watchdog
	answers  answers
	seen     wire.Seen
	batches  atomic.Int64 // see wire.Config
	refusals wire.Refusals

	served chan struct{} // closed when the session will make no further connection

	// The tables of watches, nodes and requests. Each has a lock of its own.
	watches watches // on the data of nodes
	room    room
	claims  claims
	creates creates
	carried carried
	syncs   syncs

	errands  errands       // that do not block
	removals errands       // that wait for their turn, or for a connection
	removing chan struct{} // holds a token for each removal whose first delete is in flight

	childWatches watches // on the children of nodes
	absences     watches // on nodes that do not exist

	// live is closed when a server has greeted this session for the first time and has accepted
	// its identities.
	live     chan struct{}
	liveOnce sync.Once

	watchOnce sync.Once // begins the watchdog

	mu       sync.Mutex // guards what follows
	greeting wire.Greeting
	margin   time.Duration // that the clock keeps
	link     link
	closedOK bool  // a server has confirmed closeSession, or the expiry
	err      error // why the session ended; nil while it is live
	torn     bool  // the teardown waits for the goroutines
}

// answers is what a session remembers of answers that came through the leader.
type answers struct {
	any  atomic.Bool  // there was one
	zxid atomic.Int64 // the latest transaction of them
}

// link is the present or last connection of a session.
type link struct {
	wire *wire.Conn    // nil before the first
	to   target        // its server
	isUp bool          // the connection has the session
	up   chan struct{} // closed while isUp
}

// made returns s. It panics if s is nil or a zero value.
func (s *Session) made() *Session {
	if s == nil || s.cfg == nil {
		panic("session: Session not made by Manager.Session")
	}
	return s
}

// newSession begins to open a session. It tells the manager of each connection and
// disconnection through report.
func newSession(cfg *config, d *dialer, report func(*Session, State, error)) *Session {
	s := &Session{
		cfg:    cfg,
		dialer: d,
		clock:  wire.NewClock(wire.Now()),
		report: report,
		served: make(chan struct{}),
		live:   make(chan struct{}),
		link:   link{up: make(chan struct{})},
	}
	s.life, s.endLife = context.WithCancel(context.Background())
	s.removing = make(chan struct{}, removalsAtOnce)
	s.room.limit = amount{cfg.maxNodes, cfg.maxNodeBytes}
	s.work.init(s.life.Done())
	for _, t := range s.watchTables() {
		t.init()
	}
	go s.stayConnected()
	return s
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

// keptMargin returns the margin that the clock keeps.
func (s *Session) keptMargin() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.margin
}

// Remaining returns how long the locks of this session stay held if no server answers from now on. It
// computes that at the time of the call. It returns 0 once the session has ended.
func (s *Session) Remaining() time.Duration {
	s.made()
	if s.Err() != nil {
		return 0
	}
	return max(0, s.remaining())
}

// Done returns a channel that is closed when the session has ended: when it was lost, or closed
// with its manager. [Session.Err] can report the end earlier.
func (s *Session) Done() <-chan struct{} { return s.made().life.Done() }

// Err returns nil while the session is certain, and after that an error that matches [ErrLost]
// or [ErrClosed]. It reads the clock at the time of the call, and does not depend on a timer.
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

// remaining reads the clock. A session that owns nodes has to prove more: see package wire.
func (s *Session) remaining() time.Duration {
	return s.clock.Remaining(wire.Now(), s.room.has())
}

// end ends the session. All other ways to end it call this one. The first cause stays, and end
// returns it.
func (s *Session) end(cause error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = cause
	}
	cause = s.err
	s.mu.Unlock()
	if first {
		s.watchdog.stop()
		s.endLife()
		s.breakWatches()
	}
	return cause
}

// lose ends the session for a reason that the server or the network gave.
func (s *Session) lose(why error) { s.end(lossError(s.ID(), why)) }

// begin runs f in a goroutine of the session. If the session has ended, it returns the cause.
func (s *Session) begin(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.work.do(f)
	return nil
}

// beginLate is begin for the end of a request, which can come after the end of the session. It reports false, and
// does not run f, once the teardown waits for the goroutines.
func (s *Session) beginLate(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.torn {
		s.work.do(f)
	}
	return !s.torn
}

// background is begin for work that is void once the session has ended.
func (s *Session) background(f func()) { _ = s.begin(f) }
