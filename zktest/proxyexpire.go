package zktest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Sessions returns the ids of the sessions that servers have granted through the proxy. The session with the most
// recent handshake is last.
func (p *Proxy) Sessions() []int64 {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sessions)
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
	p.sessions = append(slices.DeleteFunc(p.sessions, func(id int64) bool { return id == session }), session)
	p.passwords[session] = password
}

// Expire ends a session as if it had timed out: its ephemeral nodes are gone when Expire returns, and the client learns
// of it when it next connects. Expire closes the session's connections, and then closes the session through a new
// connection to the server, even through a blackhole. If the client reconnects in the meantime, its handshake is held
// back. Expire returns once the server has confirmed, or ctx has ended. The other servers of an ensemble may apply it a
// little later.
//
// It is an error if the session is not one of [Proxy.Sessions]. A session that is over already is not an error.
func (p *Proxy) Expire(ctx context.Context, session int64) error {
	p.made()
	misuse.Context(ctx, "zktest: Proxy.Expire")
	p.mu.Lock()
	password, ok := p.passwords[session]
	p.mu.Unlock()
	if !ok {
		return fmt.Errorf("zktest: session %#x was not made through this proxy", session)
	}
	// First the next handshake is held back, and then the links are cut that have made one. So none is missed.
	hold := p.HoldRequest(func(r Request) bool { return r.Op == OpConnect && r.Session == session })
	defer hold.Release()
	p.cutLinks(func(l *link) bool { return l.session == session })
	if err := p.end(ctx, session, password); err != nil {
		return fmt.Errorf("zktest: expire session %#x: %w", session, err)
	}
	return nil
}

// closeSession closes a session through a new connection.
func (p *Proxy) closeSession(ctx context.Context, session int64, password []byte) error {
	conn, err := p.dial(ctx, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := closeThrough(conn, session, password); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

func closeThrough(conn upstream, session int64, password []byte) error {
	// The server changes the timeout to one within its bounds.
	hello := codec.Hello{Session: session, Password: password, TimeoutMillis: 30_000}
	if _, err := conn.Write(hello.Frame()); err != nil {
		return err
	}
	frame, err := conn.ReadFrame()
	if err != nil {
		return err
	}
	if granted, _ := parseConnected(frame); granted != session {
		return nil // it was over already
	}
	const xid = 1
	_, err = conn.Write(codec.CloseFrame(xid))
	for err == nil {
		if frame, err = conn.ReadFrame(); err == nil && parseReply(frame).Xid == xid {
			return nil
		}
	}
	return err
}

// ExpireHolder is [Proxy.Expire] for the session of the client that holds a lock, or leads an election: the owner of
// the node with the lowest number under the path. If the path is itself a client's node, such as a lease's, it is the
// session of that client. It is an error if there is no such node, or if its session was not made through the proxy.
//
// A path is what servers see, with the directory of a connect string in front. The server is asked by the four-letter
// word dump, which the servers of this package answer. Others do if their option 4lw.commands.whitelist has it.
func (p *Proxy) ExpireHolder(ctx context.Context, path string) error {
	p.made()
	misuse.Context(ctx, "zktest: Proxy.ExpireHolder")
	nodes, err := p.owned(ctx, path)
	if err != nil {
		return fmt.Errorf("zktest: look for the holder of %s: %w", path, err)
	}
	if len(nodes) == 0 {
		return fmt.Errorf("zktest: no client has a node at or under %s", path)
	}
	number := func(n ownedNode) string { return n.path[max(0, len(n.path)-10):] }
	first := slices.MinFunc(nodes, func(a, b ownedNode) int { return strings.Compare(number(a), number(b)) })
	return p.Expire(ctx, first.session)
}

// WaitFree waits until no client has an ephemeral node at the path or under it, so that all that was released there is
// gone, and no lock is held or waited for. It returns an error if ctx ends first. A test needs it after an Unlock that
// does not wait for the servers (zklock.WithAsyncRelease), before another session tries the lock. See
// [Proxy.ExpireHolder] for the path.
func (p *Proxy) WaitFree(ctx context.Context, path string) error {
	p.made()
	misuse.Context(ctx, "zktest: Proxy.WaitFree")
	for {
		nodes, err := p.owned(ctx, path)
		if err == nil && len(nodes) == 0 {
			return nil
		}
		if err == nil {
			select {
			case <-time.After(pollInterval):
				continue
			case <-ctx.Done():
				err = fmt.Errorf("%w: session %#x has %s", context.Cause(ctx), nodes[0].session, nodes[0].path)
			}
		}
		return fmt.Errorf("zktest: wait until %s is free: %w", path, err)
	}
}

// An ownedNode is an ephemeral node, and the session that owns it.
type ownedNode struct {
	path    string
	session int64
}

// owned returns the ephemeral nodes at a path and under it.
func (p *Proxy) owned(ctx context.Context, path string) (all []ownedNode, err error) {
	text, err := p.dump(ctx)
	if err != nil {
		return nil, err
	}
	_, list, ok := strings.Cut(text, "Sessions with Ephemerals")
	if !ok {
		return nil, fmt.Errorf("server says: %s", strings.TrimSpace(text))
	}
	list, _, _ = strings.Cut(list, "Connections dump")
	session := uint64(0)
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if id, ok := strings.CutPrefix(line, "0x"); ok {
			if session, err = strconv.ParseUint(strings.TrimSuffix(id, ":"), 16, 64); err != nil {
				return nil, err
			}
		} else if line == path || strings.HasPrefix(line, strings.TrimSuffix(path, "/")+"/") {
			all = append(all, ownedNode{line, int64(session)})
		}
	}
	return all, nil
}
