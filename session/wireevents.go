package session

import (
	"errors"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// wireEvents is a Session with the methods of wire.Events: what a session does about the news of
// its connections.
type wireEvents Session

var _ wire.Events = (*wireEvents)(nil)

// Greeted implements wire.Events. It compares the session id of every handshake: a different id
// is a loss.
func (e *wireEvents) Greeted(g wire.Greeting, sent time.Time) error {
	s := (*Session)(e)
	s.dialer.setFailure(nil)
	if err := s.cfg.checkTimeout(g); err != nil {
		return err
	}
	if s.begun(g, sent) {
		if len(s.cfg.auths) == 0 {
			s.goLive()
		}
		return nil
	}
	if s.ID() != g.Session {
		s.lose(lossReplaced)
		return wire.Replaced(g.Session)
	}
	s.shorten(g.TimeoutMillis)
	if s.Err() == nil {
		s.clock.Heard(sent)
	}
	return s.Err() // the connection may have come back too late
}

// begun takes the first greeting, and reports whether this was the first.
func (s *Session) begun(g wire.Greeting, sent time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.greeting.Session != 0 {
		return false
	}
	s.clock.Prove(sent) // a quorum agrees to each new session
	s.clock.SetLease(lease(s.cfg, g.Timeout()))
	s.greeting = g
	return true
}

// shorten takes the timeout of a later greeting if it is less than the present one. A server that
// has restarted can have another limit, and the session expires by it from now on.
func (s *Session) shorten(timeoutMillis int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timeoutMillis < s.greeting.TimeoutMillis {
		s.greeting.TimeoutMillis = timeoutMillis
		s.clock.SetLease(lease(s.cfg, s.greeting.Timeout()))
	}
}

// lease returns how long the session is certain after the time that the clock has proven.
func lease(cfg *config, timeout time.Duration) time.Duration {
	return timeout - wire.Margin(cfg.margin, timeout)
}

// goLive makes the session live once the servers have accepted its identities.
func (s *Session) goLive() {
	s.liveOnce.Do(func() {
		close(s.live)
		s.watchdog.keep(s)
	})
}

// Accepted implements wire.Events.
func (e *wireEvents) Accepted() { (*Session)(e).goLive() }

// Refused implements wire.Events. Without its identities the session is of no use, and it can
// take long to find a server that accepts them. So the session ends, as a loss.
func (e *wireEvents) Refused(scheme string) {
	s := (*Session)(e)
	s.end(lossError(s.ID(), &refusal{scheme}))
}

// Answered implements wire.Events. It ignores an answer that comes when the clock has run out,
// because a lost session never comes back.
func (e *wireEvents) Answered(a wire.Answer) {
	s := (*Session)(e)
	if s.Err() != nil {
		return
	}
	s.answers.any.Store(true)
	s.answers.zxid.Store(max(s.answers.zxid.Load(), a.Zxid)) // called by one goroutine at a time
	s.dialer.answered(a.Since)
	s.clock.Heard(a.Sent)
	if a.Quorum {
		s.clock.Prove(a.Touched)
	}
}

// Expired implements wire.Events. If the session was of use, the server that reports its expiry
// is too. So the next session need not wait before it dials.
func (e *wireEvents) Expired() {
	s := (*Session)(e)
	if s.answers.any.Load() {
		s.dialer.useful.Store(true)
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

// Broken implements wire.Events. With TLS 1.3, for example, a client whose certificate is refused
// learns of that only after its own part of the handshake.
func (e *wireEvents) Broken(why error) {
	s := (*Session)(e)
	to := s.server()
	switch {
	case errors.Is(why, wire.ErrBadFrame):
		s.dialer.distrust(to, why)
	case s.life.Err() != nil: // Greeted has reported it, or the manager is closed
	default:
		s.dialer.failed(to, &failure{stepHandshake, to.String(), why})
	}
}

// Owns implements wire.Events.
func (e *wireEvents) Owns() bool { return e.nodes.any(wire.Now()) }

// Go implements wire.Events.
func (e *wireEvents) Go(f func()) { (*Session)(e).background(f) }
