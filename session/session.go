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

// Session is exactly one ZooKeeper session. Once it has ended, it stays ended. Methods panic if [Manager.Session] has
// not returned it.
type Session struct {
	m           *Manager
	cfg         *config
	clock       *clock.Clock
	room        room
	watches     watches
	removals    removals
	fixed       fixedNames
	directories shared[string, error] // by path with the chroot
	searches    shared[searchKey, found]
	latest      atomic.Int64 // transaction of an answer through the leader
	seen        atomic.Int64 // see wire.Config

	life    context.Context
	endLife context.CancelCauseFunc
	timer   *time.Timer

	mu       sync.Mutex
	greeting codec.Greeting
	live     bool          // a server has accepted its identities, once
	now      *link         // nil without a connection
	isUp     bool          // owed deletes have gone ahead
	up       chan struct{} // closed while isUp
	to       dial.Target   // of the present or last connection
	cutAt    time.Time     // what clock.Latest was at the last cut
	lookAt   time.Time     // when the timer is due
	err      error
	gone     bool // the servers have confirmed the end

	unidentified bool // servers refuse to close the session with our identities
}

func newSession(m *Manager) *Session {
	s := &Session{m: m, cfg: m.cfg, clock: clock.New(clock.Now()), up: make(chan struct{})}
	s.room.mostNodes, s.room.mostBytes = m.cfg.maxNodes, m.cfg.maxNodeBytes
	s.life, s.endLife = context.WithCancelCause(context.Background())
	s.removals.s = s
	s.mu.Lock() // until timer is set
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(time.Hour, s.look)
	s.timer.Stop() // the first greeting starts it
	stop := context.AfterFunc(m.open, func() { _ = s.mark(fmt.Errorf("session %s: %w", hex(s.ID()), ErrClosed)) })
	context.AfterFunc(s.life, func() { stop() }) // so that m does not keep s
	return s
}

func (s *Session) check() *Session {
	if s == nil || s.cfg == nil {
		panic("session: Session not made by Manager.Session")
	}
	return s
}

// ID returns the id that ZooKeeper gave the session.
func (s *Session) ID() int64 {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Session
}

// Timeout returns the session timeout that the servers granted. It can become shorter at a reconnect.
func (s *Session) Timeout() time.Duration {
	s.check()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Timeout()
}

// Remaining returns how long locks stay held if no server answers from now on, and 0 once the session has ended.
func (s *Session) Remaining() time.Duration {
	if s.Err() != nil {
		return 0
	}
	return max(0, s.remaining())
}

// Done returns a channel that is closed when the session has ended. [Session.Err] can report that earlier.
func (s *Session) Done() <-chan struct{} { return s.check().life.Done() }

// AfterEnd calls f in a goroutine of its own when the session has ended. stop cancels that, and reports whether f
// will not be called. A nil f panics.
func (s *Session) AfterEnd(f func()) (stop func() bool) {
	s.check()
	if f == nil {
		panic("session: Session.AfterEnd: nil function")
	}
	return context.AfterFunc(s.life, f)
}

// Err returns nil while the session is certain, and after that an error that matches [ErrLost] or [ErrClosed]. It
// reads the clock when it is called, and does not block.
func (s *Session) Err() error {
	s.check()
	s.mu.Lock()
	err, id, lookAt, timeout := s.err, s.greeting.Session, s.lookAt, s.greeting.Timeout()
	s.mu.Unlock()
	if err == nil && id != 0 && s.remaining() <= 0 {
		why := lossClock
		if late := clock.Now().Sub(lookAt); late > timeout/stillPerTimeout { // nothing in this process ran
			why = stoodStill(late)
		}
		return s.mark(&endError{id, why})
	}
	return err
}

// remaining reads the clock. A create in flight does not make the session own nodes yet: its answer is the proof.
func (s *Session) remaining() time.Duration {
	return s.clock.Remaining(clock.Now(), s.room.there.Load() > 0)
}

// mark notes why the session has ended, and returns the first cause. Its log line comes before those of locks.
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
			s.watches.breakAll() // first: that the nodes go must not look like a release
			s.endLife(cause)
		}()
	}
	return s.err
}

func (s *Session) lose(why error) { _ = s.mark(&endError{s.ID(), why}) }

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

// stake returns how long a session without a connection lives; 0 before the first greeting.
func (s *Session) stake() time.Duration {
	if s.ID() == 0 {
		return 0
	}
	return s.Remaining()
}

func (s *Session) server() dial.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

func (s *Session) link() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

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

func (s *Session) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done: // even if the others have ended too
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

// shared runs one call for all that want the same thing.
type shared[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*sharedCall[V]
}

type sharedCall[V any] struct {
	ended  chan struct{}
	result V    // and gaveUp: read once ended is closed
	gaveUp bool // its caller has gone, so one that waits runs its own
}

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
	shortPerTimeout  = 3  // time is short with less than this part of a timeout:
	silentPerTimeout = 4  // then a connection that is silent for this part is cut
	dialPerTimeout   = 10 // with less than this part left, even while an answer arrives
	looksPerTimeout  = 20
	stillPerTimeout  = 4 // a look this late means that the process stood still
)

// look is the watchdog, called by the timer. It ends a session whose clock has run out. Before that it cuts a silent
// connection, since another server may be in touch with the leader: once for each time the clock has advanced.
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
			go s.now.conn.Cut(why)
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
