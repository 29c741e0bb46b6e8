package zktest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// sessions is what a proxy knows of the sessions it has seen made.
type sessions struct {
	order     []int64 // most recent handshake last
	passwords map[int64][]byte
	expiring  map[int64]chan struct{} // closed when Expire is done with it
}

// Sessions returns the ids of the sessions that servers have granted through
// the proxy, the one with the most recent handshake last.
func (p *Proxy) Sessions() []int64 {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sessions.order)
}

// connected notes the session that a server's first frame grants.
func (p *Proxy) connected(l *link, frame []byte) {
	session, password := parseConnected(frame)
	p.mu.Lock()
	defer p.mu.Unlock()
	l.session = session
	if session == 0 {
		return // refused: expired
	}
	s := &p.sessions
	if i := slices.Index(s.order, session); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
	s.order = append(s.order, session)
	if s.passwords == nil {
		s.passwords = make(map[int64][]byte)
	}
	s.passwords[session] = password
}

// admit notes the session that a client's first frame asks for. While Expire is
// at work on that session it waits. It returns false when the link is cut first.
//
// A link that is let through is known by its session from then on. Expire first
// stops links here and then cuts those it knows, so it misses none.
func (p *Proxy) admit(l *link, session int64) bool {
	for {
		p.mu.Lock()
		over, expiring := p.sessions.expiring[session]
		if !expiring {
			l.session = session
		}
		p.mu.Unlock()
		if !expiring {
			return true
		}
		select {
		case <-over:
		case <-l.done:
			return false
		}
	}
}

// Expire ends a session behind its client's back, as if it had timed out: its
// ephemeral nodes are gone when Expire returns, and the client learns of it
// when it next connects. It closes the session's connections, holds back the
// client's handshake if it reconnects at once, and closes the session through a
// connection of its own, directly to the server, past any blackhole. It returns
// once the server has confirmed, or ctx has ended. The other servers of an
// ensemble may hear of it a little later.
//
// The session must be one of [Proxy.Sessions], and not be in another call's
// hands. One that is over already is no error.
func (p *Proxy) Expire(ctx context.Context, session int64) error {
	p.made()
	misuse.Context(ctx, "zktest: Proxy.Expire")
	password, done, err := p.beginExpire(session)
	if err != nil {
		return err
	}
	defer done()
	p.cutLinks(func(l *link) bool { return l.session == session })
	if err := p.endSession(ctx, session, password); err != nil {
		return fmt.Errorf("zktest: expire session %#x: %w", session, err)
	}
	return nil
}

// beginExpire has admit hold the session's handshakes back until done is called.
func (p *Proxy) beginExpire(session int64) (password []byte, done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.sessions
	password, ok := s.passwords[session]
	if !ok {
		return nil, nil, fmt.Errorf("zktest: session %#x was not made through this proxy", session)
	}
	if _, ok := s.expiring[session]; ok {
		return nil, nil, fmt.Errorf("zktest: session %#x is being expired already", session)
	}
	if s.expiring == nil {
		s.expiring = make(map[int64]chan struct{})
	}
	over := make(chan struct{})
	s.expiring[session] = over
	return password, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(s.expiring, session)
		close(over)
	}, nil
}

// closeSession attaches to the session and closes it.
func closeSession(ctx context.Context, target string, session int64, password []byte) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := closeThrough(conn, session, password); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return nil
}

// closeThrough closes a session through a connection that nothing was sent on.
func closeThrough(conn net.Conn, session int64, password []byte) error {
	const timeoutMillis = 30_000 // the server brings it within its bounds
	if _, err := conn.Write(connectFrame(session, password, timeoutMillis)); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	frame, err := readFrame(r)
	if err != nil {
		return err
	}
	if granted, _ := parseConnected(frame); granted != session {
		return nil // it was over already
	}
	const xid = 1
	if _, err := conn.Write(closeFrame(xid)); err != nil {
		return err
	}
	for {
		frame, err := readFrame(r)
		if err != nil {
			return err
		}
		if parseReply(frame).Xid == xid {
			return nil
		}
	}
}
