package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
)

// Session is exactly one ZooKeeper session, which [Manager.Session] returns once it is live. A session that has ended
// stays ended. Methods panic if no Manager has made the Session.
type Session struct {
	m           *Manager
	cfg         *config
	clock       *clock.Clock
	room        room
	watches     watches
	removals    removals
	fixed       fixedNames
	directories shared[string, error]    // that are being made, by path with the chroot
	searches    shared[searchKey, found] // listings behind a write that are under way
	latest      atomic.Int64             // transaction of an answer that came through the leader; 0 before
	seen        atomic.Int64             // see wire.Config

	life    context.Context
	endLife context.CancelCauseFunc // with why the session has ended
	timer   *time.Timer             // of look

	mu       sync.Mutex
	greeting codec.Greeting
	live     bool          // a server has greeted the session and has accepted its identities, once
	now      *link         // the connection that has the session, or nil
	isUp     bool          // requests may be sent over it: deletes that are owed have gone ahead
	up       chan struct{} // closed while isUp
	to       dial.Target   // the server of the present or last connection
	cutAt    time.Time     // the clock's Latest when a connection was last cut
	lookAt   time.Time     // when the next look is due
	err      error         // why the session has ended, or nil
	gone     bool          // a server has confirmed closeSession, or the expiry

	unidentified bool // the servers have refused an identity of a connection that was to close the session
}

func newSession(m *Manager) *Session {
	s := &Session{m: m, cfg: m.cfg, clock: clock.New(clock.Now()), up: make(chan struct{})}
	s.room.mostNodes, s.room.mostBytes = m.cfg.maxNodes, m.cfg.maxNodeBytes
	s.life, s.endLife = context.WithCancelCause(context.Background())
	s.removals.s = s
	s.mu.Lock() // until timer is set
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(time.Hour, s.look) // until the first greeting there is no clock to look at
	stop := context.AfterFunc(m.open, func() { _ = s.mark(fmt.Errorf("session %s: %w", hex(s.ID()), ErrClosed)) })
	context.AfterFunc(s.life, func() { stop() }) // the manager does not keep it in memory
	return s
}

func (s *Session) check() *Session {
	if s == nil || s.cfg == nil {
		panic("session: Session not made by Manager.Session")
	}
	return s
}

// ID returns the session id that ZooKeeper gave.
func (s *Session) ID() int64 {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Session
}

// Timeout returns the session timeout as negotiated with the server.
func (s *Session) Timeout() time.Duration {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Timeout()
}

// Remaining returns how long the locks of this session stay held if no server answers from now on, and 0 once the
// session has ended.
func (s *Session) Remaining() time.Duration {
	if s.Err() != nil {
		return 0
	}
	return max(0, s.remaining())
}

// Done returns a channel that is closed when the session was lost, or closed with its manager. [Session.Err] can report
// the end earlier.
func (s *Session) Done() <-chan struct{} { return s.check().life.Done() }

// AfterEnd calls f in a goroutine of its own when the session has ended. Until then it takes no goroutine. stop cancels
// that, and reports whether f will not be called. It does not wait for f. A nil f panics.
func (s *Session) AfterEnd(f func()) (stop func() bool) {
	s.check()
	if f == nil {
		panic("session: Session.AfterEnd: nil function")
	}
	return context.AfterFunc(s.life, f)
}

// Err returns nil while the session is certain, and after that an error that matches [ErrLost] or [ErrClosed]. It reads
// the clock at the time of the call. It calls no hook, and waits for nothing.
func (s *Session) Err() error {
	s.check()
	s.mu.Lock()
	err, id, lookAt, timeout := s.err, s.greeting.Session, s.lookAt, s.greeting.Timeout()
	s.mu.Unlock()
	if err == nil && id != 0 && s.remaining() <= 0 {
		why := lossClock
		if late := clock.Now().Sub(lookAt); late > timeout/stillPerTimeout { // a look was due: nothing in this process ran
			why = stoodStill(late)
		}
		return s.mark(&endError{id, why})
	}
	return err
}

// remaining reads the clock. A session whose nodes are there has to prove more. A create in flight does not count: its
// answer is the proof.
func (s *Session) remaining() time.Duration {
	return s.clock.Remaining(clock.Now(), s.room.there.Load() > 0)
}

// mark notes why the session has ended. The first cause stays, and mark returns it. Its line in the log goes before
// those of locks, because nobody knows of the end before.
func (s *Session) mark(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = cause
		s.timer.Stop()
		if s.live && s.m.open.Err() == nil {
			s.cfg.log.Warn("zookeeper session lost", "session", hex(s.greeting.Session), "server", s.to.String(), "cause", reasonOf(cause))
		}
		go func() { // callers may hold locks
			s.watches.breakAll() // first: a session that is closed deletes its nodes, which is news of no lock
			s.endLife(cause)
		}()
	}
	return s.err
}

// lose marks the end of the session for a reason that the server or the network gave.
func (s *Session) lose(why error) { _ = s.mark(&endError{s.ID(), why}) }

// isGone reports whether the servers have said that the session is gone, or it never was there.
func (s *Session) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone || s.greeting.Session == 0
}

func (s *Session) wasLive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// stake returns for how long the session is certain without a connection, or 0 if there is no session yet.
func (s *Session) stake() time.Duration {
	if s.ID() == 0 {
		return 0
	}
	return s.Remaining()
}

// server returns the server of the present or last connection.
func (s *Session) server() dial.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

// link returns the connection that has the session, or nil.
func (s *Session) link() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// ready waits for a connection that has the session, and returns it.
func (s *Session) ready(ctx context.Context) (*link, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		now, up, isUp := s.now, s.up, s.isUp
		s.mu.Unlock()
		if isUp {
			return now, nil
		}
		if err := s.await(ctx, up); err != nil {
			return nil, err
		}
	}
}

// await waits until something is done, or until ctx or the session ends. Then it returns their error.
func (s *Session) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done: // also if the others have ended
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.life.Done():
		return s.Err()
	}
}

// shared are calls that are under way, each for all that want the same.
type shared[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*sharedCall[V]
}

type sharedCall[V any] struct {
	ended  chan struct{}
	result V    // and gaveUp: read once ended is closed
	gaveUp bool // its caller has gone, so another one calls
}

// do returns the result of f, or that of a call with the same key that is under way.
func (all *shared[K, V]) do(ctx context.Context, s *Session, key K, f func() V) (result V, err error) {
	for {
		all.mu.Lock()
		one := all.m[key]
		if one == nil {
			break
		}
		all.mu.Unlock()
		if err := s.await(ctx, one.ended); err != nil {
			return result, err
		}
		if !one.gaveUp {
			return one.result, nil
		}
	}
	one := &sharedCall[V]{ended: make(chan struct{})}
	if all.m == nil {
		all.m = make(map[K]*sharedCall[V])
	}
	all.m[key] = one
	all.mu.Unlock()
	one.result = f()
	one.gaveUp = ctx.Err() != nil
	all.mu.Lock()
	delete(all.m, key)
	all.mu.Unlock()
	close(one.ended)
	return one.result, nil
}

const (
	shortPerTimeout  = 3  // the remaining time is short if it is less than this part of a timeout
	silentPerTimeout = 4  // a connection may be cut if an answer is due and nothing was heard for this part of a timeout
	dialPerTimeout   = 10 // one on which a long answer arrives is cut only when less than this part remains
	looksPerTimeout  = 20
	stillPerTimeout  = 4 // if a look is late by this part of a timeout, this process has stood still
)

// look is the watchdog, which the timer calls. It marks the end of the session when the clock has run out. Before that,
// it cuts a connection that has fallen silent, because another server may be in touch with the leader: once for each
// time the clock has advanced. It does no I/O.
func (s *Session) look() {
	if s.Err() != nil {
		return
	}
	left, last := s.remaining(), s.clock.Latest()
	s.mu.Lock()
	defer s.mu.Unlock()
	timeout := s.greeting.Timeout()
	if s.now != nil && last.After(s.cutAt) {
		noBytes, noFrame := s.now.conn.Silence(clock.Now())
		var why error
		switch long := timeout / silentPerTimeout; {
		case left < timeout/shortPerTimeout && noBytes > long:
			why = fmt.Errorf("no answer for %v, so this side cut the connection", noBytes.Round(time.Millisecond))
		case left < timeout/dialPerTimeout && noFrame > long:
			why = fmt.Errorf("one answer has taken %v, so this side cut the connection to save the session", noFrame.Round(time.Millisecond))
		}
		if why != nil {
			s.cutAt = last
			go s.now.conn.Cut(why) // with TLS that can take its time
		}
	}
	if s.err == nil {
		s.lookInLocked(max(time.Microsecond, min(timeout/looksPerTimeout, left)))
	}
}

func (s *Session) lookInLocked(d time.Duration) {
	s.lookAt = clock.Now().Add(d)
	s.timer.Reset(d)
}
