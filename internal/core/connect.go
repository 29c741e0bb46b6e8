package core

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/room"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// newSession begins to open a session. It tells the manager of each connection and
// disconnection through report.
func newSession(cfg *Config, d *dialer, report func(*Session, hooks.State, error)) *Session {
	s := &Session{
		cfg:    cfg,
		dialer: d,
		clock:  clock.New(clock.Now()),
		report: report,
		marked: make(chan struct{}),
		served: make(chan struct{}),
		link:   link{up: make(chan struct{})},
	}
	s.life, s.endLife = context.WithCancelCause(context.Background())
	s.room = room.New(s.life, room.Size{Nodes: cfg.MaxNodes, Bytes: cfg.MaxNodeBytes})
	s.watchdog.init()
	go s.watchdog.run(s)
	go s.stayConnected()
	return s
}

// stayConnected makes one connection after the other, and serves each, until the session has ended. It is
// called once.
func (s *Session) stayConnected() {
	defer close(s.served)
	for !s.isMarked() { // a dial after that could keep the next session from dialling at once
		c, to, err := s.dialer.Dial(s.life, s.stake)
		if err != nil {
			return // the session has ended
		}
		w := s.connection(c, to)
		if err := s.setWire(w, to); err != nil {
			w.Cut(err)
			return
		}
		s.serve(w, to)
	}
}

// serve serves a connection until it has ended. The requests without an answer end last, so that they end
// with the loss if this is one. They do so even if a function of the user ends this goroutine.
func (s *Session) serve(w *wire.Conn, to logbook.Target) {
	defer w.Forsake()
	why := w.Serve(s.hello())
	s.cfg.Log.Debug("zookeeper connection ended", "server", to.String(), "err", why)
	s.judge(w, to, why)
	s.setConnected(false)
}

func (s *Session) connection(c net.Conn, to logbook.Target) *wire.Conn {
	return wire.New(c, wire.Config{
		Events:         (*wireEvents)(s),
		Clock:          s.clock,
		Seen:           &s.seen,
		Outbox:         outbox.Config{Refusals: &s.refusals, Batches: &s.batches, Window: &s.cfg.window},
		Identities:     s.cfg.Auths,
		SASL:           s.cfg.sasl(s.life, to.Host),
		HandshakeLimit: s.dialer.HandshakeLimit(s.stake),
		Half:           s.dialer.tick.half,
	})
}

// hello asks for the session, with the timeout that was granted, or for a new one.
func (s *Session) hello() codec.Hello {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := &s.greeting; g.Session != 0 {
		return codec.Hello{TimeoutMillis: g.TimeoutMillis, Session: g.Session, Password: bytes.Clone(g.Password[:])}
	}
	return codec.Hello{TimeoutMillis: int32(s.cfg.Timeout.Milliseconds())}
}

// judge has the dialer know what the end of a connection says of a server. With TLS 1.3, for example, a
// client whose certificate is refused learns of that only after its own part of the handshake.
func (s *Session) judge(w *wire.Conn, to logbook.Target, why error) {
	switch {
	case errors.Is(why, codec.ErrBadFrame):
		s.dialer.Distrust(to, why)
	case s.isMarked(): // the reason is known, or the manager is closed
	case errors.As(why, new(*wire.SASLError)):
		s.dialer.Failed(&logbook.Failure{Step: logbook.StepIdentity, To: to, Err: why})
	case !w.Greeted():
		s.dialer.Failed(&logbook.Failure{Step: logbook.StepHandshake, To: to, Err: why})
	}
}

// stake returns for how long the session is certain without a connection. It returns 0 if there
// is no session yet.
func (s *Session) stake() time.Duration {
	if s.ID() == 0 {
		return 0
	}
	return s.Remaining()
}
