package zktest

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// maxRequests is the number of requests that a proxy remembers.
const maxRequests = 100_000

// A Proxy stands in front of one ZooKeeper server and makes things go wrong between the server and
// its clients. Make one with [StartProxy] or [NewProxy]. It passes on each frame at once and in one
// write, until it is told to fail:
//
//   - once, at a certain request: [Proxy.CutBefore], [Proxy.CutAfterCommit],
//     [Proxy.HoldRequest], [Proxy.HoldReply]
//   - now: [Proxy.Disconnect], [Proxy.Expire]
//   - until further notice: [Proxy.Blackhole], [Proxy.Refuse], [Proxy.Delay]
//
// It speaks ZooKeeper's client protocol only: no TLS, no four-letter words. All methods are safe for
// concurrent use. They panic if the Proxy was not made by StartProxy or NewProxy.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup // the accept loop and every link
	stop     sync.Once
	done     chan struct{} // closed by Close

	// How to reach the server, which does not change after the first link. The proxy
	// within a [Server] has functions of its own.
	dial       func(ctx context.Context, client net.Addr) (upstream, error)
	endSession func(ctx context.Context, session int64, password []byte) error
	serveWord  func(net.Conn, *bufio.Reader) bool // nil: no four-letter words
	limit      int                                // of a client's frames
	naps       bool                               // sleep through the end of a delay in the kernel; not in a bubble

	mu       sync.Mutex // guards the fields below
	target   string
	links    map[*link]struct{}
	accepted int64 // links made so far
	requests []Request
	faults   []*Fault // armed; the backing array is never changed in place
	sessions sessions

	refuse  bool
	black   Direction
	delay   time.Duration
	changed chan struct{} // closed, and replaced, when black or delay changes
}

// made returns p. It panics if p is nil or a zero value.
func (p *Proxy) made() *Proxy {
	if p == nil || p.done == nil {
		panic("zktest: Proxy not made by StartProxy or NewProxy")
	}
	return p
}

// StartProxy starts a proxy in front of the server at target, host:port, and closes it when the test
// ends.
func StartProxy(tb TB, target string) *Proxy {
	tb.Helper()
	p, err := NewProxy(target)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// NewProxy is [StartProxy] for programs. The caller must call [Proxy.Close]. The server need not run
// yet.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := newProxy()
	p.listener, p.target = listener, target
	p.dial, p.endSession, p.naps = p.dialTarget, p.closeTarget, true
	p.running.Go(func() { p.accept(listener) })
	return p, nil
}

// newProxy makes a proxy that does not listen and has no server yet.
func newProxy() *Proxy {
	return &Proxy{
		limit:   codec.MaxFrame,
		done:    make(chan struct{}),
		links:   make(map[*link]struct{}),
		changed: make(chan struct{}),
	}
}

// Addr returns the address, host:port, that clients connect to.
func (p *Proxy) Addr() string { return p.made().listener.Addr().String() }

func (p *Proxy) currentTarget() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Close closes all connections and the proxy's port, and returns once all goroutines of the proxy have
// ended. The error is that of closing the port. Later calls do nothing and return nil.
func (p *Proxy) Close() error {
	p.made()
	var err error
	p.stop.Do(func() {
		p.mu.Lock() // serve adds no link after this
		close(p.done)
		listener := p.listener
		p.mu.Unlock()
		if listener != nil {
			err = listener.Close()
		}
		p.Disconnect()
	})
	p.running.Wait()
	return err
}

// Disconnect closes all connections at once, on both sides, even through a blackhole. Frames on their
// way are lost.
func (p *Proxy) Disconnect() { p.made().cutLinks(func(*link) bool { return true }) }

// cutLinks cuts the links that which selects. It calls which with the lock held.
func (p *Proxy) cutLinks(which func(*link) bool) {
	p.mu.Lock()
	var selected []*link
	for l := range p.links {
		if which(l) {
			selected = append(selected, l)
		}
	}
	p.mu.Unlock()
	for _, l := range selected {
		l.cut()
	}
}

// accept accepts clients until the listener is closed.
func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			select {
			case <-p.done:
				return
			case <-time.After(pollInterval): // most likely there are too many open files
				continue
			}
		}
		p.serve(conn)
	}
}

// serve starts a link for a client's connection. It closes the connection if the proxy is closed or
// refuses connections.
func (p *Proxy) serve(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		_ = conn.Close()
		return
	default:
	}
	if p.refuse {
		_ = conn.Close()
		return
	}
	p.accepted++
	l := newLink(p, p.accepted, conn)
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

// record remembers a request from a client, and completes its session.
func (p *Proxy) record(l *link, r *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Op != OpConnect {
		r.Session = l.session
	}
	if len(p.requests) == maxRequests {
		// Dropping them one at a time would move the whole slice for each request.
		p.requests = slices.Delete(p.requests, 0, maxRequests/2)
	}
	p.requests = append(p.requests, *r)
}

// Requests returns the requests that have come in from clients, in order. They include handshakes and
// pings, and requests that were then cut or held. The proxy keeps at least the last 50,000 of them.
func (p *Proxy) Requests() []Request {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// ResetRequests forgets all requests that [Proxy.Requests] would return.
func (p *Proxy) ResetRequests() {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// Count returns the number of requests of [Proxy.Requests] that match.
func (p *Proxy) Count(m Match) int {
	p.made()
	if m == nil {
		panic("zktest: nil Match")
	}
	n := 0
	for _, r := range p.Requests() {
		if m(r) {
			n++
		}
	}
	return n
}
