package zktest

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// maxRequests is how many requests a proxy remembers.
const maxRequests = 100_000

// A Proxy stands in front of one ZooKeeper server and makes things go wrong.
// Make one with [StartProxy] or [NewProxy]. It passes frames on as they come,
// each in one write, until told otherwise:
//
//   - once, at a certain request: [Proxy.CutBefore], [Proxy.CutAfterCommit],
//     [Proxy.HoldRequest], [Proxy.HoldReply]
//   - now: [Proxy.Disconnect], [Proxy.Expire]
//   - until further notice: [Proxy.Blackhole], [Proxy.Refuse], [Proxy.Delay]
//
// It speaks ZooKeeper's client protocol only: no TLS, no four-letter words.
// All methods are safe for concurrent use. They panic if neither StartProxy nor NewProxy
// has made the Proxy.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup // the accept loop and every link
	stop     sync.Once
	done     chan struct{} // closed by Close

	// How to reach the server; fixed before the first link. A [Server] has
	// its own.
	dial       func(ctx context.Context, client net.Addr) (upstream, error)
	endSession func(ctx context.Context, session int64, password []byte) error
	serveWord  func(net.Conn, *bufio.Reader) bool // nil: no four-letter words
	limit      int                                // of a client's frames
	naps       bool                               // delays end in the kernel; not with a false clock

	mu       sync.Mutex // guards what follows
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

// StartProxy starts a proxy in front of the server at target, host:port, and
// closes it when the test ends.
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

// NewProxy is [StartProxy] for programs: the caller must call [Proxy.Close].
// The server need not be there yet.
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

// newProxy makes a proxy that accepts nothing and leads nowhere yet.
func newProxy() *Proxy {
	return &Proxy{
		limit:   wire.MaxFrame,
		done:    make(chan struct{}),
		links:   make(map[*link]struct{}),
		changed: make(chan struct{}),
	}
}

// Addr returns the address, host:port, that clients connect to.
func (p *Proxy) Addr() string { return p.made().listener.Addr().String() }

// SetTarget changes the server for connections from now on. Those there are
// stay with the server they have.
func (p *Proxy) SetTarget(addr string) {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

func (p *Proxy) currentTarget() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Close closes all connections and the proxy's port, and waits until nothing
// of the proxy runs any more. The error is that of closing the port; later calls do
// nothing and return nil.
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

// Disconnect closes all connections there are, on both sides, at once, through
// a blackhole as well. What was on its way is lost.
func (p *Proxy) Disconnect() { p.made().cutLinks(func(*link) bool { return true }) }

// cutLinks cuts those that which selects; it is called with the lock held.
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

// accept takes clients in until the listener is closed.
func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			select {
			case <-p.done:
				return
			case <-time.After(pollInterval): // out of files, most likely
				continue
			}
		}
		p.serve(conn)
	}
}

// serve starts a link for the connection, or closes it.
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

// record remembers a request that has come in, and completes it.
func (p *Proxy) record(l *link, r *Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Op != OpConnect {
		r.Session = l.session
	}
	if len(p.requests) == maxRequests {
		// Half at a time: moving one at a time would cost too much.
		p.requests = slices.Delete(p.requests, 0, maxRequests/2)
	}
	p.requests = append(p.requests, *r)
}

// Requests returns the requests that have come in from clients, in order,
// handshakes and pings included, and also those that were then cut or held.
// Of very many, only the last 50,000 or more are kept.
func (p *Proxy) Requests() []Request {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// ResetRequests forgets the requests so far.
func (p *Proxy) ResetRequests() {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// Count returns how many of [Proxy.Requests] match.
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
