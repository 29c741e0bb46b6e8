package zktest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
)

// maxRequests is the number of requests that a proxy remembers.
const maxRequests = 100_000

// A Proxy stands in front of one ZooKeeper server and makes things go wrong between the server and its clients. Make
// one with [StartProxy], [NewProxy] or [Run]. It passes on each frame at once and in one write, until it is told to
// fail:
//
//   - once, at a certain request: [Proxy.CutBefore], [Proxy.CutAfterCommit], [Proxy.HoldRequest], [Proxy.HoldReply]
//   - now: [Proxy.Disconnect], [Proxy.Expire], [Proxy.ExpireHolder]
//   - until further notice: [Proxy.Blackhole], [Proxy.Refuse], [Proxy.Delay]
//
// It speaks ZooKeeper's client protocol only: no TLS, no four-letter words. All methods are safe for concurrent use.
// They panic if the Proxy was not made by StartProxy, NewProxy or Run.
type Proxy struct {
	running sync.WaitGroup // the accept loop and every link
	stop    sync.Once
	done    chan struct{} // closed by Close

	listener net.Listener // nil within a [Server], which has functions of its own
	dial     func(context.Context, *link) (upstream, error)
	end      func(ctx context.Context, session int64, password []byte) error
	dump     func(context.Context) (string, error) // the four-letter word
	word     func(*link) bool                      // answers a four-letter word; nil: there are none
	limit    int                                   // of a client's frames
	naps     bool                                  // sleep through the end of a delay in the kernel; not in a bubble

	mu        sync.Mutex // guards the fields below
	links     map[*link]struct{}
	accepted  int64 // links made so far
	requests  []Request
	faults    []*Fault // armed; the backing array is never changed in place
	sessions  []int64  // that servers have granted; the most recent handshake last
	passwords map[int64][]byte

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

// StartProxy starts a proxy in front of the server at target, host:port, and closes it when the test ends.
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

// NewProxy is [StartProxy] for programs. The caller must call [Proxy.Close]. The server need not run yet.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := newProxy()
	p.listener, p.naps = listener, true
	p.dial = func(ctx context.Context, _ *link) (upstream, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", target)
		if err != nil {
			return nil, err
		}
		return tcpUpstream{conn.(*net.TCPConn), bufio.NewReader(conn)}, nil
	}
	p.end = p.closeSession
	p.dump = func(ctx context.Context) (string, error) { return fourletter.Ask(ctx, target, "dump") }
	p.running.Go(func() { acceptAll(listener, func(conn net.Conn) { p.serve(conn, 0) }) })
	return p, nil
}

// newProxy makes a proxy that does not listen and has no server yet.
func newProxy() *Proxy {
	return &Proxy{
		limit:     codec.MaxFrame,
		done:      make(chan struct{}),
		links:     make(map[*link]struct{}),
		passwords: make(map[int64][]byte),
		changed:   make(chan struct{}),
	}
}

// Addr returns the address, host:port, that clients connect to.
func (p *Proxy) Addr() string { return p.made().listener.Addr().String() }

// Close closes all connections and the proxy's port, and returns once all goroutines of the proxy have ended. The error
// is that of closing the port. Later calls do nothing and return nil.
func (p *Proxy) Close() error {
	p.made()
	var err error
	p.stop.Do(func() {
		p.mu.Lock() // serve adds no link after this
		close(p.done)
		p.mu.Unlock()
		if p.listener != nil {
			err = p.listener.Close()
		}
		p.Disconnect()
	})
	p.running.Wait()
	return err
}

// Disconnect closes all connections at once, on both sides, even through a blackhole. Frames on their way are lost.
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

// acceptAll has clients served until the listener is closed.
func acceptAll(listener net.Listener, serve func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // most likely there are too many open files
			<-time.After(pollInterval)
		default:
			serve(conn)
		}
	}
}

// serve starts a link for a client's connection to one of the servers. It closes the connection if the proxy is closed
// or refuses connections.
func (p *Proxy) serve(conn net.Conn, server int) {
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
	l := newLink(p, p.accepted, conn, server)
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
}

// record remembers a request from a client, and completes its session. From a handshake on, the link is known by the
// session that it asks for.
func (p *Proxy) record(l *link, r *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Op == OpConnect {
		l.session = r.Session
	} else {
		r.Session = l.session
	}
	if len(p.requests) == maxRequests {
		// Dropping them one at a time would move the whole slice for each request.
		p.requests = slices.Delete(p.requests, 0, maxRequests/2)
	}
	p.requests = append(p.requests, *r)
}

// Requests returns the requests that have come in from clients, in order. They include handshakes and pings, and
// requests that were then cut or held. The proxy keeps at least the last 50,000 of them.
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
