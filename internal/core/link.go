package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

func (s *Session) setWire(w *wire.Conn, t logbook.Target) error {
	s.mu.Lock()
	err := s.err
	var owed []*persistence
	if err == nil {
		s.link.wire, s.link.to, s.link.open = w, t, true
		owed, s.owed = s.owed, nil
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	carried := s.carried.take(w)
	// All of these wait for the greeting. A caller that gives up a lock while there is no connection, and then takes it
	// again, does not find its own node.
	for _, p := range owed {
		p.deleteAtOnce()
	}
	for _, c := range carried {
		s.callLasting(w, c)
	}
	return nil
}

// present returns the present or last connection, or nil if there was none.
func (s *Session) present() *wire.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.wire
}

// cut returns a channel that is closed when the present connection ends. It is closed already if there is none.
func (s *Session) cut() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.link.isUp {
		return closedNow
	}
	return s.link.down
}

var closedNow = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

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
			s.link.down = make(chan struct{})
		} else {
			s.link.up = make(chan struct{})
			close(s.link.down)
		}
	}
	s.link.open = s.link.open && up
	s.mu.Unlock()
	if !up {
		// No watch is trusted across a reconnect: events may have come and gone.
		s.watches.Break()
	}
	switch {
	case !changed:
	case up:
		s.report(s, hooks.Connected, nil)
	case s.cfg.LossOnSuspend:
		s.lose(fmt.Errorf("%w: %w", lossSuspend, why))
	default:
		s.report(s, hooks.Suspended, why)
	}
}

// server returns the server of the present or last connection.
func (s *Session) server() logbook.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link.to
}

// linkFailure returns why the last connection ended. There was one.
func (s *Session) linkFailure() error {
	s.mu.Lock()
	w, to := s.link.wire, s.link.to
	s.mu.Unlock()
	return &logbook.Failure{Step: logbook.StepConnected, To: to, Err: cmp.Or(w.Err(), net.ErrClosed)}
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
				// A create would stay in the outbox, with its room and a goroutine, while this write waits, also if its
				// caller has given up by then.
				_ = rounds.Pause(ctx, stallLook)
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

func (s *Session) stalled() bool { return s.present().Stalled(clock.Now()) } // there was a connection

// callLasting sends a call over a connection, or over the next one if the connection ends before the call has left.
func (s *Session) callLasting(w *wire.Conn, c outbox.Call) {
	one := c
	one.Done = func(r outbox.Reply) {
		if errors.Is(r.Err, outbox.ErrNotSent) {
			if c.Batch != nil && c.Batch.Load() > 0 {
				c.Batch = nil // it was part of a multi that was refused
			}
			switch next, ok := s.carried.keep(w, c); {
			case next != nil:
				s.callLasting(next, c)
				return
			case ok:
				return
			}
		}
		c.Done(r)
	}
	w.Call(one)
}
