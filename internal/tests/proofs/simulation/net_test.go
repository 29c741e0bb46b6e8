package simulation

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

var errRefused = errors.New("connection refused")

// endpoint is one manager's network to the servers, with faults of its own.
type endpoint struct {
	world *world
	party int
	name  string

	mu      sync.Mutex
	dials   int // so far
	last    int // the server dialled last
	newest  *link
	black   zktest.Direction
	refuse  bool
	forget  bool // the next handshake for a session is turned into one for a new one
	noBury  bool // connections that close a session that was lost do not get through
	noProbe bool // nor those that ask for the shortest session
	pinned  int  // connections go to this server while it is 0 or more
	losing  bool // the next create of a contender loses its reply
	stale   stale
	changed chan struct{}
	links   map[*link]struct{}
}

func newEndpoint(w *world, party int, name string) *endpoint {
	return &endpoint{
		world: w, party: party, name: name,
		last:    -1,
		pinned:  -1,
		changed: make(chan struct{}),
		links:   make(map[*link]struct{}),
	}
}

// change makes a change and wakes the frames that wait.
func (e *endpoint) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *endpoint) blackhole(d zktest.Direction) { e.change(func() { e.black |= d }) }
func (e *endpoint) setRefuse(on bool)            { e.change(func() { e.refuse = on }) }
func (e *endpoint) heal() {
	e.change(func() {
		e.black, e.refuse, e.forget, e.noBury, e.losing, e.pinned = 0, false, false, false, false, -1
	})
}

// cut closes all connections.
func (e *endpoint) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.links {
		l.cut()
	}
}

// dial is the manager's dialer. It returns a connection at once. The server hears of it with the
// first frame that arrives.
func (e *endpoint) dial(context.Context, string, string) (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse {
		return nil, errRefused
	}
	client, inner := net.Pipe()
	l := &link{e: e, inner: inner, began: time.Now(), asked: make(map[int32]request)}
	l.up = newLane(l, zktest.ToServer)
	l.down = newLane(l, zktest.ToClient)
	e.links[l] = struct{}{}
	go l.up.read(inner)
	go func() {
		l.deliverUp()
		l.cut()
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.links, l)
	}()
	return clientSide{client, l}, nil
}

// clientSide is the client's side of a link.
type clientSide struct {
	net.Conn
	l *link
}

// Close notes that the client takes nothing more from the link, before the server hears of it.
func (c clientSide) Close() error {
	c.l.left.Store(true)
	return c.Conn.Close()
}

// link is one connection of a manager.
type link struct {
	e        *endpoint
	inner    net.Conn // to the client
	began    time.Time
	salt     uint64 // of what it began with: two may be made at one instant
	up, down *lane
	left     atomic.Bool // the client has closed it
	session  int64       // that it belongs to, as the server answered; of deliverDown

	mu     sync.Mutex
	server net.Conn // nil until dialed
	asked  map[int32]request
}

// cut closes both sides.
func (l *link) cut() {
	_ = l.inner.Close()
	l.e.world.checks.kept.cut(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// deliverUp forwards the client's frames, until it ends.
func (l *link) deliverUp() {
	for first := true; ; {
		group := l.up.next()
		group = l.canonical(group, first)
		if first && group[0].frame != nil {
			l.salt = mix(uint64(handshakeSession(group[0].frame)), len(group))
		}
		for len(group) > 0 {
			n := l.up.burst(group, func(a, b packet) bool { return a.req.key == b.req.key })
			if first {
				if l.isBurial(group) || !l.connect(group[0]) {
					return
				}
				first = false
			}
			l.up.wait()
			for _, p := range group[:n] {
				if p.frame == nil {
					return
				}
				l.sent(p)
				if _, err := l.server.Write(p.frame); err != nil {
					return
				}
			}
			group = group[n:]
		}
	}
}

// canonical sorts the frames of one instant, which come from goroutines that do not wait for each
// other, into an order that only the seed chooses. Frames that are sent at the instant at
// which the client also closes the connection get lost, as if they had not been sent.
func (l *link) canonical(group []packet, first bool) []packet {
	if end := group[len(group)-1]; end.frame == nil {
		return []packet{end}
	}
	seed := l.e.world.seed
	for i := range group {
		p := &group[i]
		p.req = parseRequest(p.frame, first && i == 0)
		p.rank = p.req.rank()
		p.order = mix(seed, "order", p.req.key, p.at)
	}
	slices.SortStableFunc(group, func(a, b packet) int {
		switch {
		case a.rank != b.rank:
			return a.rank - b.rank
		case a.order < b.order:
			return -1
		case a.order > b.order:
			return 1
		}
		return 0
	})
	return group
}

// connect reaches the server, once both directions are open. It returns false if the client
// has given up by then: no connection is made through a partition.
func (l *link) connect(hello packet) bool {
	e := l.e
	l.up.waitFor(zktest.Both)
	if hello.frame == nil || l.up.ended() {
		return false
	}
	e.mu.Lock()
	forget := e.forget && len(hello.frame) > 28 && handshakeSession(hello.frame) != 0
	if forget {
		e.forget = false
		forgetSession(hello.frame)
	}
	e.mu.Unlock()
	if forget {
		e.world.trace.add("fault", "the server does not know %s's session and gives it another", e.name)
	}
	server, err := e.world.server.DialerTo(e.choose())(context.Background(), "tcp", "")
	if err != nil {
		return false
	}
	e.mu.Lock()
	e.newest = l
	e.mu.Unlock()
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	go l.down.read(server)
	go l.deliverDown()
	return true
}

// choose draws the server of the next connection: not the last one, if there is another.
func (e *endpoint) choose() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dials++
	n := e.world.plan.servers
	i := int(mix(e.world.seed, "server", e.party, e.dials) % uint64(n))
	if i == e.last && n > 1 {
		i = (i + 1 + int(mix(e.world.seed, "other", e.party, e.dials)%uint64(n-1))) % n
	}
	if e.pinned >= 0 {
		i = e.pinned
	}
	e.last = i
	return i
}

// isBurial reports whether this is a connection that only closes a session, or only asks for the
// shortest timeout, and must not succeed.
func (l *link) isBurial(group []packet) bool {
	if len(group) != 2 || group[1].req.op != zktest.OpClose {
		return false
	}
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	if handshakeSession(group[0].frame) == 0 {
		return l.e.noProbe
	}
	return l.e.noBury
}

func (l *link) sent(p packet) {
	l.asks(&p.req)
	l.mu.Lock()
	p.req.burst = l.up.count
	l.asked[p.req.xid] = p.req
	l.mu.Unlock()
	l.e.world.trace.add(l.e.name, "-> %s", p.req.key)
}

// deliverDown forwards the server's frames, until it ends.
func (l *link) deliverDown() {
	for {
		group := l.down.next()
		for len(group) > 0 {
			n := l.down.burst(group, l.sameAsked)
			l.down.wait()
			for _, p := range group[:n] {
				if p.frame == nil {
					l.cut()
					return
				}
				if l.lost(&p) {
					l.cut()
					return
				}
				l.received(p)
				if _, err := l.inner.Write(p.frame); err != nil {
					return // the server hears of that from the other direction
				}
			}
			group = group[n:]
		}
	}
}

// sameAsked reports whether two frames answer the same request of two goroutines, sent at
// one instant. They must arrive at one instant too. Otherwise it would matter which goroutine got the
// first one, and the scheduler chooses that.
func (l *link) sameAsked(a, b packet) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, _, _ := parseReply(a.frame)
	y, _, _ := parseReply(b.frame)
	one, ok := l.asked[x]
	two, also := l.asked[y]
	return ok && also && one.burst == two.burst
}

// childrenChanged is the type of an event.
const childrenChanged = 4

func (l *link) received(p packet) {
	t := l.e.world.trace
	if l.down.passed == 0 {
		l.down.passed++
		l.session = answeredSession(p.frame)
		t.add(l.e.name, "<- connected")
		return
	}
	xid, code, path := parseReply(p.frame)
	switch xid {
	case -1:
		t.add(l.e.name, "<- EVENT %d %s", code, path)
		if code == childrenChanged {
			l.e.world.checks.kept.changed(l, path)
		}
	case -2:
	default:
		l.mu.Lock()
		req := l.asked[xid]
		delete(l.asked, xid)
		l.mu.Unlock()
		text := "<- " + strings.TrimSpace(req.key)
		if code != 0 {
			t.add(l.e.name, "%s: error %d", text, code)
		} else {
			l.e.world.limits.tells(l.e.name, req, p)
			if req.op == zktest.OpGetChildren2 {
				l.e.world.checks.kept.lists(l, req, p.frame)
			}
			t.add(l.e.name, "%s", text)
		}
	}
}
