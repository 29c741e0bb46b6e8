package zktest

import (
	"bufio"
	"context"
	"net"
)

// An upstream is a link's connection to the server. Each Write is one frame.
type upstream interface {
	ReadFrame() ([]byte, error)
	Write(frame []byte) (int, error)
	CloseWrite() error // says that no more frames follow those written
	Close() error      // ends a ReadFrame or Write in progress
}

// tcpUpstream is the connection to a server over TCP.
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

// closeTarget closes a session through a new connection to the target.
func (p *Proxy) closeTarget(ctx context.Context, session int64, password []byte) error {
	return closeSession(ctx, p.currentTarget(), session, password)
}

// closeWrite closes the proxy's direction of a client's connection. A connection that cannot close
// one direction is closed.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
