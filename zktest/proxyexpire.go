package zktest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// sessions holds what a proxy knows of the sessions that servers have granted.
type sessions struct {
	order     []int64 // the most recent handshake last
	passwords map[int64][]byte
	expiring  map[int64]chan struct{} // closed when Expire returns
}

// Sessions returns the ids of the sessions that servers have granted through the proxy. The session
// with the most recent handshake is last.
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

// admit notes the session that a client's first frame asks for. It waits while that session is being
// expired. It returns false if the link is cut first.
//
// From then on the link is known by its session. Expire first stops new links here and then cuts the
// known ones, so it misses none.
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

// Expire ends a session as if it had timed out: its ephemeral nodes are gone when Expire returns, and
// the client learns of it when it next connects. Expire closes the session's connections, and then
// closes the session through a new connection to the server, even through a blackhole. If the client
// reconnects in the meantime, its handshake is held back. Expire returns once the server has
// confirmed, or ctx has ended. The other servers of an ensemble may apply it a little later.
//
// It is an error if the session is not one of [Proxy.Sessions], or if another call of Expire is in
// progress for it. A session that is over already is not an error.
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

// beginExpire makes admit hold back the session's handshakes until done is called.
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

// closeSession connects to the server at target, attaches to the session and closes it.
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

// closeThrough closes a session through a new connection.
func closeThrough(conn net.Conn, session int64, password []byte) error {
	const timeoutMillis = 30_000 // the server changes it to one within its bounds
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
