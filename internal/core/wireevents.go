package core

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// wireEvents is a Session with the methods of wire.Events: what a session does about the news of
// its connections.
type wireEvents Session

var _ wire.Events = (*wireEvents)(nil)

// Greeted implements wire.Events. It compares the session id of every handshake: a different id is a loss.
func (e *wireEvents) Greeted(g codec.Greeting, sent time.Time) error {
	s := (*Session)(e)
	s.dialer.Greeted()
	if err := s.cfg.checkTimeout(g); err != nil {
		return err
	}
	first := s.begun(g, sent)
	if !first && s.ID() != g.Session {
		s.lose(lossReplaced)
		return wire.Replaced(g.Session)
	}
	if err := s.grant(g, first); err != nil {
		s.lose(err) // the servers count by that timeout already
		return err
	}
	if first {
		close(s.watchdog.begun) // also before it is live: a server may never answer an identity
	} else if s.Err() == nil {
		s.clock.Heard(sent)
	}
	return s.Err() // the connection may have come back too late
}

// Ready implements wire.Events.
func (e *wireEvents) Ready() {
	s := (*Session)(e)
	s.setConnected(true)
	if len(s.cfg.Auths) == 0 {
		e.Accepted()
	}
}

// begun takes the first greeting, and reports whether this was the first.
func (s *Session) begun(g codec.Greeting, sent time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.greeting.Session != 0 {
		return false
	}
	s.clock.Prove(sent) // a quorum agrees to each new session
	s.greeting = g
	return true
}

// grant takes the timeout of a greeting if it is the first, or if it is less than the present one. A
// server that has restarted can have another limit, and the session expires by it from now on. grant fails
// if no lock could live with that timeout.
func (s *Session) grant(g codec.Greeting, first bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !first && g.TimeoutMillis >= s.greeting.TimeoutMillis {
		return nil
	}
	s.greeting.TimeoutMillis = g.TimeoutMillis
	timeout, half := g.Timeout(), s.dialer.tick.half(g.Timeout())
	margin, ok := clock.Margin(s.cfg.Margin, timeout, half)
	s.margin = margin
	s.clock.SetLease(timeout - margin)
	if !ok {
		return &shortLease{timeout, margin, half}
	}
	return nil
}

// Accepted implements wire.Events. The session is live from now on.
func (e *wireEvents) Accepted() { e.live.Tell() }

// Refused implements wire.Events. Without its identities the session is of no use, and it can
// take long to find a server that accepts them. So the session ends, as a loss.
func (e *wireEvents) Refused(scheme string, why error) {
	s := (*Session)(e)
	_ = s.mark(lossError(s.ID(), &refusal{scheme, why}))
}

// Answered implements wire.Events. It ignores an answer that comes when the clock has run out,
// because a lost session never comes back.
func (e *wireEvents) Answered(a clock.Answered, zxid int64, since time.Duration) {
	s := (*Session)(e)
	if s.Err() != nil {
		return
	}
	s.latest.Store(max(s.latest.Load(), zxid)) // one connection follows the other
	s.dialer.Answered(since)
	s.clock.Take(a)
}

// Expired implements wire.Events. If the session was of use, the server that reports its expiry
// is too. So the next session need not wait before it dials.
func (e *wireEvents) Expired() {
	s := (*Session)(e)
	if s.latest.Load() > 0 {
		s.dialer.Useful()
	}
	e.Closed()
	s.lose(lossExpired)
}

// Closed implements wire.Events.
func (e *wireEvents) Closed() {
	s := (*Session)(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closedOK = true
}

// Fired implements wire.Events.
func (e *wireEvents) Fired(kind int32, path string) { e.watches.Fired(kind, path) }

// Owns implements wire.Events.
func (e *wireEvents) Owns() bool { return e.room.Any() }
