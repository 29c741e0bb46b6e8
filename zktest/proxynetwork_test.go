package zktest_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// wire is a client and a server that speak frames through a proxy and do nothing that they are not told to.
type wire struct {
	proxy          *zktest.Proxy
	client, server *net.TCPConn
}

func newWire(t *testing.T) wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	p := zktest.StartProxy(t, listener.Addr().String())
	client, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	server, err := listener.Accept()
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return wire{p, client.(*net.TCPConn), server.(*net.TCPConn)}
}

// ends returns the sender and the receiver in direction d.
func (w wire) ends(d zktest.Direction) (from, to *net.TCPConn) {
	if d == zktest.ToServer {
		return w.client, w.server
	}
	return w.server, w.client
}

// send sends a frame with one number in it.
func send(t *testing.T, conn net.Conn, n uint32) {
	t.Helper()
	frame := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 4}, n)
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
}

// next returns the number in the next frame, and io.EOF at the end.
func next(conn net.Conn, within time.Duration) (uint32, error) {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	var frame [8]byte
	_, err := io.ReadFull(conn, frame[:])
	return binary.BigEndian.Uint32(frame[4:]), err
}

func wantNext(t *testing.T, conn net.Conn, want uint32) {
	t.Helper()
	if got, err := next(conn, testserver.Patience); got != want || err != nil {
		t.Errorf("next frame: %d, %v; want %d", got, err, want)
	}
}

func wantNothing(t *testing.T, conn net.Conn) {
	t.Helper()
	var timeout net.Error
	if got, err := next(conn, 100*time.Millisecond); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("next frame: %d, %v; want nothing to come", got, err)
	}
}

func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if got, err := next(conn, testserver.Patience); !errors.Is(err, io.EOF) {
		t.Errorf("next frame: %d, %v; want the end", got, err)
	}
}

// A partition hides frames and the end of the connection. Both arrive when it is over.
func TestBlackholeHidesClose(t *testing.T) {
	t.Parallel()
	for _, d := range []zktest.Direction{zktest.ToServer, zktest.ToClient} {
		t.Run(d.String(), func(t *testing.T) {
			w := newWire(t)
			from, to := w.ends(d)
			send(t, from, 1)
			wantNext(t, to, 1)

			w.proxy.Blackhole(d)
			send(t, from, 2)
			send(t, from, 3)
			send(t, to, 4) // the other direction is there still
			wantNext(t, from, 4)
			_ = from.Close()
			wantNothing(t, to)

			w.proxy.Heal()
			wantNext(t, to, 2)
			wantNext(t, to, 3)
			wantEnd(t, to)
		})
	}
}

// The server never sees a client that gives up while the network is down.
func TestBlackholeHidesNewConnections(t *testing.T) {
	t.Parallel()
	p := zktest.StartProxy(t, sharedServer(t))
	p.Blackhole(zktest.ToServer)
	gone, err := net.Dial("tcp", p.Addr())
	must(t, err)
	send(t, gone, 1)
	zktest.Eventually(t, testserver.Patience, "the proxy has it", func() bool { return len(p.Requests()) == 1 })
	conn, _ := dial(t, p.Addr(), testserver.Patience)
	zktest.Eventually(t, testserver.Patience, "a handshake", func() bool { return len(p.Requests()) == 2 })
	_ = gone.Close()
	if n := len(p.Sessions()); n != 0 {
		t.Errorf("%d sessions through a partition", n)
	}
	p.Heal()
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return conn.State() == zk.StateHasSession })
}
