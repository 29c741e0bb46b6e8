package session

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// run is the loop of the manager: one session after another, and for each one connection after another.
func (m *Manager) run() {
	defer close(m.stopped)
	m.outage.begin()
	waits := m.cfg.waits
	var s *Session
	for m.open.Err() == nil {
		s = newSession(m)
		for s.Err() == nil {
			conn, to, err := m.dialer.Dial(s.life, func() time.Duration { return m.hurry(s) })
			switch {
			case err == nil:
				m.serve(s, conn, to)
			case s.life.Err() == nil:
				m.outage.failed(to, err)
			}
		}
		if m.open.Err() != nil {
			m.transition(Closed, s, s.Err())
		} else if s.wasLive() {
			waits.Reset()
			m.transition(Lost, s, s.Err())
			m.transition(Connecting, nil, nil)
		} else {
			m.unusable(s, s.Err())
		}
		m.outage.begin()
		m.closer.add(s)
		_ = rounds.Until(m.open, nil, waits.Next())
	}
	m.transition(Closed, nil, ErrClosed)
	m.outage.end()
	m.closeErr = m.closer.finish()
	m.dialer.Close(m.closer.life)
	switch {
	case m.closeErr != nil:
		m.cfg.log.Warn("zookeeper session not closed on the servers", "err", m.closeErr)
	case s != nil && s.wasLive() && errors.Is(s.Err(), ErrClosed):
		m.cfg.log.Info("zookeeper session closed", "session", hex(s.ID()))
	}
}

// hurry is what is at stake during a dial: the session, or a lost one that lives on until the next one is greeted.
func (m *Manager) hurry(s *Session) time.Duration {
	if s.ID() == 0 && m.closer.hasWork() {
		return m.cfg.patience
	}
	return s.stake()
}

// serve serves a connection until it has ended. A goroutine that hangs in a connection of the program is left behind.
func (m *Manager) serve(s *Session, c net.Conn, to dial.Target) {
	const patience = time.Second // for the answer to closeSession, and for the goroutine
	l := s.newLink(c, to)
	m.outage.waits(to)
	go l.serve(s)
	select {
	case <-l.over:
		return
	case <-s.life.Done():
	}
	if m.open.Err() != nil && s.link() == l {
		l.conn.CloseSession()
		_ = rounds.Until(context.Background(), l.over, patience)
	}
	go l.conn.Cut(net.ErrClosed)
	_ = rounds.Until(context.Background(), l.over, patience)
}

type tick struct {
	told     time.Duration
	learning atomic.Bool
	shortest atomic.Int64 // least session timeout that is granted; 0 if not known
}

// shortestHalf bounds what is learned: an operator may have set minSessionTimeout below two ticks.
const shortestHalf = time.Second

// half returns half a tick, or more.
func (t *tick) half(timeout time.Duration) time.Duration {
	if t.told > 0 {
		return t.told / 2
	}
	if m := time.Duration(t.shortest.Load()); m > 0 {
		return min(timeout/4, max(m/4, shortestHalf))
	}
	return timeout / 4
}

// learnTick asks for a session timeout of 1 ms. Servers raise that to minSessionTimeout, two ticks by default.
func (m *Manager) learnTick() {
	if m.tick.told > 0 || m.tick.learning.Swap(true) {
		return
	}
	m.closer.beside(func() {
		for waits := m.cfg.waits; m.open.Err() == nil; _ = rounds.Until(m.open, nil, waits.Next()) {
			out := m.visit(m.open, dial.Target{}, codec.Hello{TimeoutMillis: 1}, true)
			if out.Greeting.TimeoutMillis > 0 {
				m.tick.shortest.Store(int64(out.Greeting.Timeout()))
				return
			}
		}
	})
}
