package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/wire"
)

type link struct {
	conn *wire.Conn
	to   dial.Target
	cut  chan struct{} // closed when the connection no longer has the session
	over chan struct{} // closed when all of its calls have ended
}

// No server grants other timeouts unless asked. With one of weeks the clock would never run out.
const (
	longestGrant  = time.Hour
	shortestGrant = 10 * time.Millisecond
)

func (s *Session) newLink(c net.Conn, to dial.Target) *link {
	s.mu.Lock()
	s.to = to
	hello := codec.Hello{TimeoutMillis: int32(s.cfg.timeout.Milliseconds())}
	if g := &s.greeting; g.Session != 0 {
		hello = codec.Hello{TimeoutMillis: g.TimeoutMillis, Session: g.Session, Password: bytes.Clone(g.Password[:])}
	}
	s.mu.Unlock()
	return &link{to: to, cut: make(chan struct{}), over: make(chan struct{}), conn: wire.New(c, wire.Config{
		Hello: hello, Seen: &s.seen, Owned: &s.room.all, Identities: s.cfg.auths, SASL: s.cfg.sasl, Host: to.Host,
		Limit: s.m.dialer.HandshakeLimit(s.stake), Half: s.m.tick.half, Clock: s.clock,
	})}
}

// serve serves the connection until it has ended. Then the watches break before anything is told, and calls without
// an answer end last, so that they see the loss if this is one.
func (l *link) serve(s *Session) {
	defer close(l.over)
	defer l.conn.Forsake()
	greeting, sent, err := l.conn.Greet()
	if err == nil {
		err = s.greeted(greeting, sent, l.to)
	}
	if err == nil {
		err = l.conn.Open()
	}
	greeted := err == nil
	if greeted {
		s.connected(l)
	}
	for err == nil {
		var news wire.News
		if news, err = l.conn.Next(); err == nil {
			err = s.take(news)
			news.End()
		}
	}
	why := l.conn.Close(err)
	s.cfg.log.Debug("zookeeper connection ended", "server", l.to.String(), "err", why)
	var refused *wire.SASLError
	switch {
	case errors.Is(why, wire.ErrNoSession):
		s.expired()
	case errors.As(why, &refused):
		s.lose(&refusal{"sasl", why})
	case errors.Is(why, codec.ErrBadFrame):
		s.m.dialer.Distrust()
	}
	switch {
	case s.Err() != nil:
	case greeted:
		s.m.outage.begin()
		s.m.outage.failed(l.to, &dial.Failure{Step: dial.StepConnected, To: l.to, Err: why})
	default:
		s.m.outage.failed(l.to, &dial.Failure{Step: dial.StepHandshake, To: l.to, Err: why})
	}
	s.disconnected(l, why)
}

func (s *Session) greeted(g codec.Greeting, sent time.Time, by dial.Target) error {
	if granted := g.Timeout(); granted > max(s.cfg.timeout, longestGrant) || granted < min(s.cfg.timeout, shortestGrant) {
		return fmt.Errorf("%w: a session timeout of %v, after %v was asked for", codec.ErrBadFrame, granted, s.cfg.timeout)
	}
	s.mu.Lock()
	first := s.greeting.Session == 0
	if first {
		s.greeting = g
		s.clock.Prove(sent) // a quorum agrees to each new session
	}
	other := s.greeting.Session != g.Session
	s.mu.Unlock()
	if other {
		s.lose(lossReplaced)
		return wire.Replaced(g.Session)
	}
	if err := s.grant(g, first); err != nil {
		s.lose(err) // the servers count by that timeout already
		return err
	}
	if !first && s.Err() == nil {
		s.clock.Heard(sent)
	}
	if first {
		s.m.closer.greetedBy(by)
	}
	return s.Err() // the connection may have come back too late
}

// grant takes the timeout of the first greeting, and a shorter one of a later greeting: a restarted server can have
// another limit, by which the session then expires.
func (s *Session) grant(g codec.Greeting, first bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !first && g.TimeoutMillis >= s.greeting.TimeoutMillis {
		return nil
	}
	s.greeting.TimeoutMillis = g.TimeoutMillis
	timeout, half := g.Timeout(), s.m.tick.half(g.Timeout())
	margin, ok := clock.Margin(s.cfg.margin, timeout, half)
	s.clock.SetLease(timeout - margin)
	if first && s.err == nil {
		s.lookInLocked(timeout / looksPerTimeout) // a server may never answer an identity
	}
	if !ok {
		return &shortLease{timeout, margin, half}
	}
	s.m.outage.terms(g.Session, s.to, timeout, margin)
	return nil
}

// connected sends owed deletes first. A session is live when a server has accepted its identities.
func (s *Session) connected(l *link) {
	s.mu.Lock()
	over := s.err != nil
	if !over {
		s.now = l
	}
	wait := len(s.cfg.auths) > 0 && !s.live
	s.mu.Unlock()
	if over {
		return
	}
	s.removals.resume(l)
	if !wait {
		s.accepted()
	}
}

func (s *Session) accepted() {
	s.mu.Lock()
	if s.now == nil || s.err != nil || s.isUp {
		s.mu.Unlock()
		return
	}
	again := s.live
	s.live, s.isUp = true, true
	close(s.up)
	s.mu.Unlock()
	s.m.outage.connected(s, again)
	s.m.transition(Connected, s, nil)
	s.m.learnTick()
}

func (s *Session) disconnected(l *link, why error) {
	s.mu.Lock()
	changed := s.now == l && s.live && s.err == nil
	if s.now == l {
		if s.now = nil; s.isUp {
			s.isUp, s.up = false, make(chan struct{})
		}
	}
	s.mu.Unlock()
	failure := &dial.Failure{Step: dial.StepConnected, To: l.to, Err: cmp.Or(why, net.ErrClosed)}
	s.watches.breakAll() // no watch is trusted across a reconnect: events may have come and gone
	close(l.cut)
	switch {
	case !changed:
	case s.cfg.lossOnSuspend:
		s.lose(fmt.Errorf("%w: %w", lossSuspend, failure))
	default:
		s.cfg.log.Log(context.Background(), s.m.outage.breakLevel(), "zookeeper session suspended", "session", hex(s.ID()),
			"server", l.to.String(), "cause", failure.Reason(), "remaining", rounded(s.Remaining()))
		s.m.transition(Suspended, s, failure)
	}
}

func (s *Session) take(n wire.News) error {
	if n.Kind != 0 {
		s.watches.fired(n.Kind, s.cfg.inward(n.Path))
	}
	if n.ByLeader && s.Err() == nil { // late answers revive nothing
		s.latest.Store(max(s.latest.Load(), n.Zxid))
		s.m.dialer.Answered(n.Since)
		s.clock.Take(n.Proof)
	}
	switch {
	case n.Accepted:
		s.accepted()
	case n.Refused != "":
		s.lose(&refusal{n.Refused, nil})
	case n.Expired:
		s.expired()
	case n.Closed:
		s.mu.Lock()
		s.gone = true
		s.mu.Unlock()
		return net.ErrClosed
	}
	return nil
}

// expired takes a server's word that the session has expired. If that session was of use, so is the server: the next
// dial need not wait.
func (s *Session) expired() {
	if s.latest.Load() > 0 {
		s.m.dialer.Useful()
	}
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	s.lose(lossExpired)
}
