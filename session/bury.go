package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
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
		s.closeConn(ctx)
	}()
	if s.isConnected() {
		<-asked
	}
	s.cut()
	s.bury(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-asked
		for range s.gone {
		}
		s.work.wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done(): // zk.Conn hangs, in some way not known to us
	}
	if ctx.Err() != nil && !s.isBuried() {
		return fmt.Errorf("session: close 0x%x: no server has confirmed it; it ends by expiry", uint64(s.ID()))
	}
	return nil
}

// cut closes the socket. That can take its time, with TLS, so no lock is held.
func (s *Session) cut() {
	s.mu.Lock()
	w := s.wire
	s.mu.Unlock()
	if w != nil {
		w.Conn.Close()
	}
}

// bury closes the session on the server over a connection of its own, unless the
// server has confirmed that it is gone. A session that is lost here can live on
// there, when the way back alone was cut, or the connection came back later than the
// clock allowed; its nodes would keep everybody waiting. It gives up when ctx ends or
// the server must have expired the session by itself.
func (s *Session) bury(ctx context.Context) {
	if s.isBuried() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.Timeout())
	defer cancel()
	wait := s.cfg.retry()
	present := s.cfg.auths
	if errors.Is(s.Err(), zk.ErrAuthFailed) {
		present = nil // it would be refused again
	}
	for !s.isBuried() && ctx.Err() == nil {
		if s.buryOnce(ctx, present) {
			present = nil
		}
		if !s.isBuried() {
			_ = pause(ctx, untiring(wait))
		}
	}
}

func (s *Session) isBuried() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closedOK || s.greeting.session == 0
}

// buryOnce sends the handshake and closeSession right behind it, without waiting in
// between: where answers do not get through that does all the same, and never
// prolongs the session's life without ending it. Identities go before closeSession, as
// there are servers that take nothing without; one that refuses an identity takes nothing
// after it, and buryOnce reports that.
func (s *Session) buryOnce(ctx context.Context, present []auth) (refused bool) {
	c, _, err := s.dialer.dialNow(ctx)
	if err != nil {
		return false
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if c.SetDeadline(time.Now().Add(s.cfg.connectTimeout)) != nil {
		return false
	}
	s.mu.Lock()
	ours := s.greeting
	s.mu.Unlock()
	if _, err := c.Write(buryFrames(ours, present)); err != nil {
		return false
	}
	// The greeting says whether the session was still there; the answer to closeSession,
	// that it is no longer.
	var in frames
	var greeted, gone bool
	buf := make([]byte, 256)
	for !gone {
		n, err := c.Read(buf)
		bad := in.feed(buf[:n], func(head []byte) ([]field, error) {
			if greeted {
				xid, code := replyOf(head)
				gone = gone || xid == buryXid && (code == 0 || code == codeSessionExpired)
				refused = refused || xid == xidAuth && code != 0
				return nil, nil
			}
			g, err := parseGreeting(head)
			if err == nil && g.session != 0 && g.session != ours.session {
				err = errReplaced
			}
			greeted, gone = err == nil, err == nil && g.session == 0
			return nil, err
		})
		if err != nil || bad != nil {
			break
		}
	}
	if gone {
		s.sessionClosed()
	}
	return refused
}

const buryXid = 1

// buryFrames returns a handshake for the session, its identities, and a closeSession.
func buryFrames(g greeting, present []auth) []byte {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint32(b, 44)                      // length
	b = binary.BigEndian.AppendUint32(b, 0)                       // protocol version
	b = binary.BigEndian.AppendUint64(b, 0)                       // last zxid seen: any server will do
	b = binary.BigEndian.AppendUint32(b, uint32(g.timeoutMillis)) // timeout
	b = binary.BigEndian.AppendUint64(b, uint64(g.session))       // session
	b = binary.BigEndian.AppendUint32(b, passwordLength)          // password
	b = append(b, g.password[:]...)                               //
	for _, a := range present {
		b = append(b, authFrame(a)...)
	}
	b = binary.BigEndian.AppendUint32(b, 8)       // length
	b = binary.BigEndian.AppendUint32(b, buryXid) // xid
	closeSession := int32(opClose)
	return binary.BigEndian.AppendUint32(b, uint32(closeSession))
}
