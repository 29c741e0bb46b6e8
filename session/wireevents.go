package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// wireEvents is what a session does about what its connections tell it.
type wireEvents Session

var _ wire.Events = (*wireEvents)(nil)

// Greeted implements wire.Events. The id after every handshake is compared: a session
// change is a loss.
func (e *wireEvents) Greeted(g wire.Greeting, sent time.Time) error {
	s := (*Session)(e)
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
	return s.Err() // it may have come back too late
}

// begun takes the first greeting, and reports whether this was it.
func (s *Session) begun(g wire.Greeting, sent time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.greeting.Session != 0 {
		return false
	}
	s.clock.Prove(sent) // a quorum agrees to a new session
	s.clock.SetLease(lease(s.cfg, g.Timeout()))
	s.greeting = g
	return true
}

// shorten takes a timeout that a later greeting grants, if it is less: a server that was
// started again can have another limit, and has the session expired by it from now on.
func (s *Session) shorten(timeoutMillis int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timeoutMillis < s.greeting.TimeoutMillis {
		s.greeting.TimeoutMillis = timeoutMillis
		s.clock.SetLease(lease(s.cfg, s.greeting.Timeout()))
	}
}

// lease returns for how long what the clock is told is good.
func lease(cfg *config, timeout time.Duration) time.Duration {
	return timeout - wire.Margin(cfg.margin, timeout)
}

func (s *Session) goLive() {
	s.liveOnce.Do(func() {
		close(s.live)
		s.watchdog.keep(s)
	})
}

// Accepted implements wire.Events.
func (e *wireEvents) Accepted() { (*Session)(e).goLive() }

// Refused implements wire.Events. Without its identities the session is worth nothing, and a
// server that takes them can be long in coming: it ends, as a loss.
func (e *wireEvents) Refused(scheme string) {
	s := (*Session)(e)
	s.end(lossError(s.ID(), &refusal{scheme}))
}

// Answered implements wire.Events. An answer that comes when the clock has run out is too
// late: what is lost never comes back.
func (e *wireEvents) Answered(a wire.Answer) {
	s := (*Session)(e)
	if s.Err() != nil {
		return
	}
	s.answers.any.Store(true)
	s.answers.zxid.Store(max(s.answers.zxid.Load(), a.Zxid)) // one connection's reader at a time
	s.dialer.answered(a.Since)
	s.clock.Heard(a.Sent)
	if a.Quorum {
		s.clock.Prove(a.Touched)
	}
}

// Expired implements wire.Events. The server that says so of a session that was of use is of
// use itself: the next session need not wait.
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

// Broken implements wire.Events.
func (e *wireEvents) Broken(why error) {
	s := (*Session)(e)
	s.mu.Lock()
	server := s.link.server
	s.mu.Unlock()
	switch {
	case errors.Is(why, wire.ErrBadFrame):
		s.cfg.log.Warn("zookeeper connection given up", "server", server, "err", why)
		s.dialer.distrust(why)
	case errors.Is(why, wire.ErrSilent):
		s.dialer.setFailure(fmt.Errorf("connect to %s: %w", server, why))
	}
	// That the session has ended is told elsewhere.
}

// WatchesArmed implements wire.Events.
func (e *wireEvents) WatchesArmed() bool { return e.watches.anyArmed() }

// WatchesRefused implements wire.Events. A server that has too much to do refuses setWatches
// as it does anything else.
func (e *wireEvents) WatchesRefused() { e.watches.disarm() }

// Owns implements wire.Events.
func (e *wireEvents) Owns() bool { return e.nodes.any(wire.Now()) }

// Go implements wire.Events.
func (e *wireEvents) Go(f func()) { (*Session)(e).background(f) }
