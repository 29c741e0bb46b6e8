package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// teardown lets go of an ended session: zk.Conn, its goroutines, and what the
// server may still have of it. It returns when all of that is done; ctx bounds how
// long the server is asked. An error says that no server has confirmed the end.
func (s *Session) teardown(ctx context.Context) error {
	// Close asks the server to close the session, but only over a connection that is
	// there, and otherwise waits for nothing, seconds long. Then the socket is closed
	// under it, as it would go on reading.
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		s.conn.close(ctx, s.isConnected())
	}()
	if s.isConnected() {
		<-asked
	}
	s.cut()
	s.closeOnServer(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-asked
		s.conn.wait()
		s.work.wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // zk.Conn hangs, in some way not known to us
	}
	if ctx.Err() != nil && !s.closedOnServer() {
		return fmt.Errorf("session: close 0x%x: no server has confirmed it; it ends by expiry", uint64(s.ID()))
	}
	return nil
}

// closeOnServer closes the session on the server over a connection of its own, unless the
// server has confirmed that it is gone. A session that is lost here can live on
// there, when the way back alone was cut, or the connection came back later than the
// clock allowed; its nodes would keep everybody waiting. It gives up when ctx ends or
// the server must have expired the session by itself.
func (s *Session) closeOnServer(ctx context.Context) {
	if s.closedOnServer() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.Timeout())
	defer cancel()
	wait := s.cfg.retry()
	present := s.cfg.auths
	if errors.Is(s.Err(), zk.ErrAuthFailed) {
		present = nil // it would be refused again
	}
	for !s.closedOnServer() && ctx.Err() == nil {
		if s.visitToClose(ctx, present) {
			present = nil
		}
		if !s.closedOnServer() {
			_ = pause(ctx, untiring(wait))
		}
	}
}

func (s *Session) closedOnServer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closedOK || s.greeting.Session == 0
}

// visitToClose makes one visit, and reports whether the server refused an identity.
func (s *Session) visitToClose(ctx context.Context, present []wire.Identity) (refused bool) {
	s.mu.Lock()
	ours := s.greeting
	s.mu.Unlock()
	out, err := s.dialer.visit(ctx, wire.Visit{
		Hello:      wire.Hello{TimeoutMillis: ours.TimeoutMillis, Session: ours.Session, Password: ours.Password[:]},
		Identities: present,
	})
	if err == nil && out.Gone {
		(*wireEvents)(s).Closed()
	}
	return out.Refused
}
