package zktest

import (
	"bufio"
	"context"
	"net"
)

// upstream is the server's end of a link. Each Write is one frame.
type upstream interface {
	ReadFrame() ([]byte, error)
	Write(frame []byte) (int, error)
	CloseWrite() error // no more frames will come; those that did still count
	Close() error      // ends a ReadFrame or Write that is under way
}

// tcpUpstream is a server in another process.
type tcpUpstream struct {
	*net.TCPConn
	in *bufio.Reader
}

func (u tcpUpstream) ReadFrame() ([]byte, error) { return readFrame(u.in) }

// dialTarget connects to the proxy's target.
func (p *Proxy) dialTarget(ctx context.Context, _ net.Addr) (upstream, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", p.currentTarget())
	if err != nil {
		return nil, err
	}
	return tcpUpstream{conn.(*net.TCPConn), bufio.NewReader(conn)}, nil
}

// closeTarget ends a session through a connection of its own to the target.
func (p *Proxy) closeTarget(ctx context.Context, session int64, password []byte) error {
	return closeSession(ctx, p.currentTarget(), session, password)
}

// closeWrite tells a client that no more will come. A pipe has no half of it
// to close.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
