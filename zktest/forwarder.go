package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// forwarder passes bytes on between the servers that connect to it and a target, and can
// hold back all bytes of a direction.
type forwarder struct {
	listener net.Listener
	target   string
	up, down relay // to the target, and from it
	running  sync.WaitGroup
	stop     sync.Once
	done     chan struct{} // closed by close

	mu      sync.Mutex    // guards what follows
	black   Direction     // ToServer is towards the target
	changed chan struct{} // closed, and replaced, when black changes
	conns   map[net.Conn]struct{}
}

// A relay passes on what comes in on a connection. When it returns nil, the forwarder
// copies the rest. A nil relay copies everything.
type relay func(to io.Writer, from io.Reader) error

// newForwarder listens; start lets connections in.
func newForwarder(target string) (*forwarder, error) {
	listener, err := listenAnywhere()
	if err != nil {
		return nil, fmt.Errorf("zktest: listen for a peer: %w", err)
	}
	return &forwarder{
		listener: listener,
		target:   target,
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
		conns:    make(map[net.Conn]struct{}),
	}, nil
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

func (f *forwarder) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

func (f *forwarder) start(up, down relay) {
	f.up, f.down = up, down
	f.running.Go(f.accept)
}

func (f *forwarder) close() error {
	var err error
	f.stop.Do(func() {
		f.mu.Lock()
		close(f.done)
		for conn := range f.conns {
			_ = conn.Close()
		}
		f.mu.Unlock()
		err = f.listener.Close()
	})
	f.running.Wait()
	return err
}

// cut holds a direction back, in addition to what is held back already.
func (f *forwarder) cut(d Direction) { f.change(func() { f.black |= d & Both }) }

func (f *forwarder) heal() { f.change(func() { f.black = 0 }) }

func (f *forwarder) change(apply func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	apply()
	close(f.changed)
	f.changed = make(chan struct{})
}

// pass waits until bytes may pass in direction d, or in both; it returns false when the
// forwarder is closed first.
func (f *forwarder) pass(d Direction) bool {
	for {
		f.mu.Lock()
		cut, changed := f.black&d != 0, f.changed
		f.mu.Unlock()
		select {
		case <-f.done:
			return false
		default:
		}
		if !cut {
			return true
		}
		select {
		case <-changed:
		case <-f.done:
			return false
		}
	}
}

func (f *forwarder) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			select {
			case <-f.done:
				return
			case <-time.After(pollInterval): // out of files, most likely
				continue
			}
		}
		f.running.Go(func() { f.serve(conn) })
	}
}

// track has close close a connection; it returns false, and does so, if that was called.
func (f *forwarder) track(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.done:
		_ = conn.Close()
		return false
	default:
		f.conns[conn] = struct{}{}
		return true
	}
}

// drop closes a connection.
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
	if !f.pass(Both) { // a handshake needs both directions
		return
	}
	server, err := net.DialTimeout("tcp", f.target, startWithin)
	if err != nil || !f.track(server) {
		return
	}
	defer f.drop(server)
	var ways sync.WaitGroup
	way := func(d Direction, to, from net.Conn, relay relay) {
		defer to.Close()
		defer from.Close()
		out := &gated{f: f, d: d, to: to}
		if relay == nil || relay(out, from) == nil {
			_, _ = io.Copy(out, from)
		}
		// The news that one side has closed waits as its bytes would; then both ends hear it.
		if out.failed {
			d = Both &^ d // it is the receiver that has closed
		}
		f.pass(d)
	}
	ways.Go(func() { way(ToServer, server, client, f.up) })
	ways.Go(func() { way(ToClient, client, server, f.down) })
	ways.Wait()
}

// gated writes when bytes may pass.
type gated struct {
	f      *forwarder
	d      Direction
	to     net.Conn
	failed bool // a write has
}

func (g *gated) Write(p []byte) (int, error) {
	if !g.f.pass(g.d) {
		return 0, net.ErrClosed
	}
	n, err := g.to.Write(p)
	g.failed = err != nil
	return n, err
}

// What a member says first when it connects for an election: a version, its number, and
// its address. Releases before 3.5 say their number only.
const (
	electionV1     = -65536 // one address
	electionV2     = -65535 // several, with | between them
	maxAddressText = 512
)

// callBackAt has a member say an address other than its own. The greater number calls the
// smaller back at the address that this has said.
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
			return errors.New("zktest: an election address that long is none")
		}
		if _, err := io.CopyN(io.Discard, from, int64(n)); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(head[16:], uint32(len(addr)))
		_, err := to.Write(append(head, addr...))
		return err
	}
}
