package peerlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// direction is a direction of the traffic through a forwarder.
type direction int

const (
	up   direction = 1 << iota // to the target
	down                       // from the target
	both = up | down
)

const dialWithin = time.Minute

// A forwarder passes on bytes between the servers that connect to it and its target. It can
// hold back all bytes of a direction.
type forwarder struct {
	listener net.Listener
	target   string
	up, down relay // to the target, and from it
	running  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // of black and closed
	black   direction  // held back
	closed  bool
	conns   map[net.Conn]struct{}
}

// A relay passes on the bytes of one direction of a connection. When it returns nil, the
// forwarder copies the rest. A nil relay copies everything.
type relay func(to io.Writer, from io.Reader) error

// newForwarder makes a forwarder that listens. It accepts no connection before start.
func newForwarder(target string) (*forwarder, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("peerlink: listen for a peer: %w", err)
	}
	f := &forwarder{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	f.changed.L = &f.mu
	return f, nil
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

func (f *forwarder) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

func (f *forwarder) start(up, down relay) {
	f.up, f.down = up, down
	f.running.Go(f.accept)
}

func (f *forwarder) close() error {
	f.mu.Lock()
	f.closed = true
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.changed.Broadcast()
	f.mu.Unlock()
	err := f.listener.Close()
	f.running.Wait()
	return err
}

// cut holds back the bytes of a direction, in addition to the directions that are held back already.
func (f *forwarder) cut(d direction) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.black |= d
}

func (f *forwarder) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.black = 0
	f.changed.Broadcast()
}

// pass waits until bytes may pass in direction d, or in both directions. It returns false if the forwarder is closed.
func (f *forwarder) pass(d direction) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.black&d != 0 && !f.closed {
		f.changed.Wait()
	}
	return !f.closed
}

func (f *forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		switch {
		case err == nil:
			f.running.Go(func() { f.serve(conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			<-time.After(5 * time.Millisecond) // most likely there are too many open files
		}
	}
}

// track adds a connection to those that close closes. If the forwarder is closed already, it
// closes the connection and returns false.
func (f *forwarder) track(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		_ = conn.Close()
		return false
	}
	f.conns[conn] = struct{}{}
	return true
}

// drop closes a connection and forgets it.
func (f *forwarder) drop(conn net.Conn) {
	_ = conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}

func (f *forwarder) serve(client net.Conn) {
	if !f.track(client) {
		return
	}
	defer f.drop(client)
	if !f.pass(both) { // TCP's handshake needs both directions
		return
	}
	server, err := net.DialTimeout("tcp", f.target, dialWithin)
	if err != nil || !f.track(server) {
		return
	}
	defer f.drop(server)
	var ways sync.WaitGroup
	way := func(d direction, to, from net.Conn, relay relay) {
		defer to.Close()
		defer from.Close()
		out := &gated{f: f, d: d, to: to}
		if relay == nil || relay(out, from) == nil {
			_, _ = io.Copy(out, from)
		}
		// The news that one side has closed the connection is held back like its bytes. Then both sides get it.
		if out.failed {
			d = both &^ d // the receiver has closed the connection
		}
		f.pass(d)
	}
	ways.Go(func() { way(up, server, client, f.up) })
	ways.Go(func() { way(down, client, server, f.down) })
	ways.Wait()
}

// gated is a writer that waits until bytes may pass.
type gated struct {
	f      *forwarder
	d      direction
	to     net.Conn
	failed bool // a write has failed
}

func (g *gated) Write(p []byte) (int, error) {
	if !g.f.pass(g.d) {
		return 0, net.ErrClosed
	}
	n, err := g.to.Write(p)
	g.failed = err != nil
	return n, err
}

// The first message of a server that connects for an election is a version, the server's
// number, and its address. Releases before 3.5 send their number only.
const (
	electionV1     = -65536 // one address
	electionV2     = -65535 // several addresses, separated by |
	maxAddressText = 512
)

// callBackAt returns a relay that replaces the address in a server's first message. When the server with the smaller
// number connects, the server with the greater number calls it back at this address.
func callBackAt(addr string) relay {
	return func(to io.Writer, from io.Reader) error {
		head := make([]byte, 20)
		if _, err := io.ReadFull(from, head[:8]); err != nil {
			return err
		}
		if v := int64(binary.BigEndian.Uint64(head)); v != electionV1 && v != electionV2 {
			_, err := to.Write(head[:8])
			return err
		}
		if _, err := io.ReadFull(from, head[8:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[16:])
		if n > maxAddressText {
			return errors.New("peerlink: an election address that long is none")
		}
		if _, err := io.CopyN(io.Discard, from, int64(n)); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(head[16:], uint32(len(addr)))
		_, err := to.Write(append(head, addr...))
		return err
	}
}
