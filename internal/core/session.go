package core

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/line"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/room"
	"github.com/turnstile-go/turnstile/internal/watches"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Session is that of package session.
type Session struct {
	cfg    *Config
	dialer *dialer
	report func(s *Session, to hooks.State, why error) // tells the manager of connections; must not block

	// The session's life. Anybody can mark its end. The watchdog ends it then.
	life    context.Context
	endLife context.CancelCauseFunc // with why the session has ended
	marked  chan struct{}           // closed when err is set
	running sync.WaitGroup          // functions that end with the session

	// How long the session is certain.
	clock    *clock.Clock
	watchdog watchdog
	latest   atomic.Int64 // transaction of an answer that came through the leader; 0 before the first
	seen     atomic.Int64 // see wire.Config
	batches  atomic.Int64 // see outbox.Config
	refusals outbox.Refusals

	served chan struct{} // closed when the session will make no further connection

	// The tables of watches, nodes and requests. Each has a lock of its own.
	watches  watches.Tables
	room     *room.Account
	creates  creates
	underway underway
	carried  carried
	syncs    syncs

	errands line.Errands // that do not block

	live news.News // that a server has greeted this session and has accepted its identities

	mu       sync.Mutex // guards what follows
	greeting codec.Greeting
	margin   time.Duration // that the clock keeps
	link     link
	owed     []*persistence // removals whose deletes the next connection sends first
	closedOK bool           // a server has confirmed closeSession, or the expiry
	err      error          // why the session ended; nil while it is live
	torn     bool           // the teardown waits for the goroutines
}

// link is the present or last connection of a session.
type link struct {
	wire *wire.Conn     // nil before the first
	to   logbook.Target // its server
	open bool           // it takes requests, which wait until it has the session
	isUp bool           // the connection has the session
	up   chan struct{}  // closed while isUp
	down chan struct{}  // closed when isUp ends; nil before the first connection
}

// Made returns s. It panics if s is nil or a zero value.
func (s *Session) Made() *Session {
	if s == nil || s.cfg == nil {
		panic("session: Session not made by Manager.Session")
	}
	return s
}

// ID is that of session.Session.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeting.Session
}

// Timeout is that of session.Session.
func (s *Session) Timeout() time.Duration {
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

// Remaining is that of session.Session.
func (s *Session) Remaining() time.Duration {
	if s.Err() != nil {
		return 0
	}
	return max(0, s.remaining())
}

// Done is that of session.Session.
func (s *Session) Done() <-chan struct{} { return s.Made().life.Done() }

// Err is that of session.Session.
func (s *Session) Err() error {
	s.mu.Lock()
	err, id := s.err, s.greeting.Session
	s.mu.Unlock()
	if err == nil && id != 0 && s.remaining() <= 0 {
		return s.mark(lossError(id, lossClock))
	}
	return err
}

// remaining reads the clock. A session that owns nodes has to prove more: see package wire.
func (s *Session) remaining() time.Duration {
	return s.clock.Remaining(clock.Now(), s.room.Has())
}

// mark notes why the session has ended. The first cause stays, and mark returns it. A lost session never comes
// back. mark ends nothing itself, since all callers that look at the clock call it. The watchdog ends the session.
func (s *Session) mark(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = cause
		close(s.marked)
	}
	return s.err
}

// isMarked reports whether somebody has marked the end of the session. It does not look at the clock.
func (s *Session) isMarked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// end ends the session. Only the watchdog calls it, once the end is marked.
func (s *Session) end() {
	s.endLife(s.Err())
	s.watches.Break()
	s.mu.Lock()
	owed := s.owed
	s.owed = nil
	s.mu.Unlock()
	for _, p := range owed {
		p.end(s.Err())
	}
}

// lose marks the end of the session for a reason that the server or the network gave.
func (s *Session) lose(why error) { _ = s.mark(lossError(s.ID(), why)) }

// begin runs f in another goroutine. If the session has ended, it returns the cause.
func (s *Session) begin(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.run(f)
	return nil
}

// BeginLate is begin for the end of a request, which can come after the end of the session. It reports false, and
// does not run f, once the teardown waits for the goroutines.
func (s *Session) BeginLate(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.torn {
		s.run(f)
	}
	return !s.torn
}

// run runs f in a goroutine of the manager. The teardown waits for f.
func (s *Session) run(f func()) {
	s.running.Add(1)
	s.cfg.trace.Do(func() {
		defer s.running.Done()
		f()
	})
}

// AfterEnd is that of session.Session.
func (s *Session) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(s.life, f) }

// InTurn calls f, which must not block. One goroutine of the session calls all such functions, in order: when a
// connection breaks, thousands of watches end at once.
func (s *Session) InTurn(f func()) { s.errands.Add(f) }

// outward adds the chroot to a path, and inward removes it.
func (s *Session) outward(path string) string { return s.cfg.outward(path) }

func (s *Session) inward(path string) string {
	rest := strings.TrimPrefix(path, s.cfg.chroot)
	if rest == "" {
		return "/"
	}
	return rest
}
