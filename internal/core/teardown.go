package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/rounds"
)

// askTime bounds how long a teardown waits for the answer to closeSession on the session's connection. After that it
// asks over another.
const askTime = time.Second

// teardown cleans up after an ended session: it ends its connection, its goroutines, and the session on the
// server. It returns when all of that is done, or when ctx ends. An error says that no server has confirmed the end.
func (s *Session) teardown(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.tearDown(ctx)
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // a function of the user, such as a hook or the Close of a connection, may not return
	}
	if ctx.Err() != nil && !s.closedOnServer() {
		return fmt.Errorf("session: close %s: no server has confirmed it; it ends by expiry", sessionID(s.ID()))
	}
	return nil
}

// tearDown is teardown. ctx bounds how long it asks the servers.
func (s *Session) tearDown(ctx context.Context) {
	<-s.watchdog.ended // first: the servers tell that they delete the nodes of a closed session, which is news of no lock
	s.carried.end()
	if w := s.present(); w != nil { // no other comes after it
		if s.isConnected() {
			w.CloseSession()
			_ = rounds.Until(ctx, s.served, askTime)
		}
		w.Cut(net.ErrClosed)
	}
	s.closeOnServer(ctx)
	<-s.served
	s.mu.Lock()
	s.torn = true
	s.mu.Unlock()
	s.running.Wait()
}

// closeOnServer closes the session on the server over a connection of its own, unless a server
// has confirmed that the session is gone. A session that is lost here can live on there, if only
// the way back was cut, or if the connection came back after the clock had run out. Its nodes
// would block all waiters. closeOnServer gives up when ctx ends, or when the server must have
// expired the session.
func (s *Session) closeOnServer(ctx context.Context) {
	if s.closedOnServer() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.Timeout())
	defer cancel()
	wait := s.cfg.Retry()
	identify := !errors.Is(s.Err(), zk.ErrAuthFailed) // otherwise they would be refused again
	for !s.closedOnServer() && ctx.Err() == nil {
		out := s.dialer.visit(ctx, s.hello(), identify)
		if out.Gone {
			(*wireEvents)(s).Closed()
			return
		}
		identify = identify && !out.Refused
		_ = rounds.Pause(ctx, rounds.Untiring(wait))
	}
}

// closedOnServer reports whether a server has confirmed the end of the session, or there never
// was one.
func (s *Session) closedOnServer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closedOK || s.greeting.Session == 0
}
