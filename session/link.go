package session

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// connEvents is a Session with the methods of clientEvents.
type connEvents Session

var _ clientEvents = (*connEvents)(nil)

func (e *connEvents) session() *Session { return (*Session)(e) }

// dial makes the next connection. It waits until there is one, or until the session has ended.
func (e *connEvents) dial() (net.Conn, error) {
	s := e.session()
	c, t, err := s.dialer.dial(s.life, s.stake)
	if err != nil {
		return nil, err
	}
	w := wire.New(c, wire.Config{
		Events:         (*wireEvents)(s),
		Clock:          s.clock,
		Seen:           &s.seen,
		Refusals:       &s.refusals,
		Window:         &s.cfg.window,
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

func (e *connEvents) ended() bool { return e.life.Err() != nil }

func (e *connEvents) expired() { e.session().lose(lossExpired) }

func (e *connEvents) setConnected(up bool) { e.session().setConnected(up) }

// stake returns for how long the session is certain without a connection. It returns 0 if there
// is no session yet.
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
		s.link.wire, s.link.to = w, t
	}
	return s.err
}

// present returns the present or last connection, or nil if there was none.
func (s *Session) present() *wire.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.wire
}

// forsake ends the requests that have no answer. zk.Conn has done with the connection.
func (s *Session) forsake() {
	if w := s.present(); w != nil {
		w.Forsake()
	}
}

// isConnected reports whether there is a connection that has the session.
func (s *Session) isConnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.isUp
}

func (s *Session) setConnected(up bool) {
	var why error
	if !up {
		why = s.linkFailure()
	}
	s.mu.Lock()
	changed := s.link.isUp != up && s.err == nil
	if s.link.isUp != up {
		s.link.isUp = up
		if up {
			close(s.link.up)
		} else {
			s.link.up = make(chan struct{})
		}
	}
	s.mu.Unlock()
	if !up {
		// No watch is trusted across a reconnect: events may have come and gone.
		s.breakWatches()
		defer s.forsake() // last, so that requests in flight end with the loss if this is one
	}
	switch {
	case !changed:
	case up:
		s.report(s, Connected, nil)
	case s.cfg.lossOnSuspend:
		s.lose(fmt.Errorf("%w: %w", lossSuspend, why))
	default:
		s.report(s, Suspended, why)
	}
}

// server returns the server of the present or last connection.
func (s *Session) server() target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.to
}

// linkFailure returns why the last connection ended.
func (s *Session) linkFailure() error {
	s.mu.Lock()
	w, to := s.link.wire, s.link.to
	s.mu.Unlock()
	if w == nil {
		return nil
	}
	why := w.Err()
	if why == nil {
		why = net.ErrClosed
	}
	return &failure{stepConnected, to.String(), why}
}

// ready waits for a connection. It returns nil if there is one, the cause if the session has
// ended, or ctx.Err().
func (s *Session) ready(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.Err(); err != nil {
			return err
		}
		s.mu.Lock()
		up := s.link.up
		s.mu.Unlock()
		select {
		case <-up:
			switch {
			case !s.isConnected():
			case !s.stalled():
				return nil
			default:
				// A request would wait in memory, and be sent even if the caller has given up by then.
				_ = pause(ctx, stallLook)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
		}
	}
}

// isReady reports whether ready would return nil at once.
func (s *Session) isReady() bool { return s.Err() == nil && s.isConnected() && !s.stalled() }

// stallLook is how often ready checks whether the network takes bytes again.
const stallLook = 20 * time.Millisecond

func (s *Session) stalled() bool {
	w := s.present()
	return w != nil && w.Stalled(wire.Now())
}

// silenceOf returns for how long a connection has owed an answer without sending anything, and without beginning an
// answer. w may be nil.
func silenceOf(w *wire.Conn) (noBytes, noFrame time.Duration) {
	if w == nil {
		return 0, 0
	}
	return w.Silence(wire.Now())
}

// cut closes the socket for a reason. With TLS that can take its time, so it holds no lock.
func (s *Session) cut(why error) {
	if w := s.present(); w != nil {
		w.Cut(why)
	}
}
