package wire

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The session's requests. zk.Conn would need a goroutine for each that is under way, and a system call for
// each that it writes. Here a request needs no goroutine, and those that come together are written together.
//
// The answers pass through zk.Conn too, which ignores their negative numbers. An answer counts once
// zk.Conn asks for the bytes behind it: it has dealt with all earlier events by then. So events and
// answers come in the server's order, as if zk.Conn had sent all requests.

// Reply is the answer to a [Conn.Call].
type Reply struct {
	Code int32   // of the server
	Body Decoder // well-formed for the kind of request; empty if Code is not CodeOK
	Err  error   // not nil if there was no answer; matches ErrTooLong if the call is the reason

	// Shared is not nil if several calls have this answer. They get it one after the other. The first keeps here what it
	// has made of the body, for the others.
	Shared *any
}

// Call sends a request when the window has room for it (window.go). It fills in the request's number, does not
// block, and does not change the frame any more once done was called. A request that comes before the greeting
// waits for it. Requests leave in the order in which they come, with two exceptions. Deletes go ahead of other requests
// that wait for room: they make directories shorter, and let other clients in. Lists of children may leave
// later, and together (listings.go).
//
// done is called once: with the answer, or with an error after [Conn.Forsake]. It is called by the
// goroutine that reads, or by the one that calls Forsake or Call, and must not block.
func (w *Conn) Call(frame []byte, done func(Reply)) {
	if !w.calls.post(call{frame, done}) {
		done(Reply{Err: net.ErrClosed})
		return
	}
	w.poke()
}

// poke has a goroutine send the calls that wait.
func (w *Conn) poke() {
	select {
	case w.posted <- struct{}{}:
	default:
	}
}

// Forsake gives up the calls that have no answer. Further calls fail at once. It must be called when zk.Conn has
// done with the connection.
func (w *Conn) Forsake() { w.calls.forsake(w.hungUp.Load(), w.cfg.Refusals) }

// calls are the calls of one connection that have not ended.
type calls struct {
	mu       sync.Mutex
	window   window
	fixed    *atomic.Int32 // see Config.Window
	expected expected
	waiting  line               // not sent yet
	deletes  line               // those that came when others waited for room; they go first
	lists    listings           // those that wait aside
	sent     map[int32]sentCall // by number
	answered []answered         // zk.Conn has not read as far, in order
	most     int                // how many sent has had at a time since it was made
	over     bool
}

type call struct {
	frame []byte
	done  func(Reply)
}

// sentCall is a call in flight.
type sentCall struct {
	done  func(Reply)
	at    time.Time
	size  int  // of the request
	load  int  // in the window
	alone bool // see window.sent
	read  read
}

// answered is a call with an answer that ends at a place in the stream of all bytes that came.
type answered struct {
	end   int64
	done  func(Reply)
	reply Reply
}

// line has calls in order.
type line struct {
	all  []call
	gone int // how many at the beginning of all have left
}

func (l *line) len() int     { return len(l.all) - l.gone }
func (l *line) first() call  { return l.all[l.gone] }
func (l *line) rest() []call { return l.all[l.gone:] }

func (l *line) push(one call) {
	if l.gone > len(l.all)/2 && len(l.all) == cap(l.all) {
		n := copy(l.all, l.all[l.gone:])
		clear(l.all[n:])
		l.all, l.gone = l.all[:n], 0
	}
	l.all = append(l.all, one)
}

func (l *line) pop() {
	l.all[l.gone] = call{}
	if l.gone++; l.gone == len(l.all) {
		l.all, l.gone = l.all[:0], 0
		if cap(l.all) > flightRoom {
			l.all = nil
		}
	}
}

// post adds a call, unless the connection is over.
func (c *calls) post(one call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
	case opOf(one.frame) == OpDelete && (c.window.wantsCalls || c.window.wantsBytes):
		c.deletes.push(one)
	default:
		c.waiting.push(one)
	}
	return !c.over
}

// begin is called with the greeting.
func (c *calls) begin(timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.begin(timeout)
}

// together is about how many bytes of calls are written at once. All frames of a write count as sent when it begins,
// and no heartbeat goes while it lasts. So on a slow network long writes would cost the session its lease.
const together = 16 << 10

// take returns the frames of calls to send now, with the numbers that next returns. Others may have to wait for
// the next write, or for room in the window. oldest is when the oldest frame in flight was sent.
func (c *calls) take(now, oldest time.Time, next func() int32) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.look(now, oldest)
	var frames [][]byte
	for size := 0; size < together; {
		from, load, read := c.nextLocked()
		if from == nil {
			break
		}
		one := from.first()
		from.pop()
		c.lists.left++
		xid := next()
		binary.BigEndian.PutUint32(one.frame[4:], uint32(xid))
		if c.sent == nil {
			c.sent = make(map[int32]sentCall)
		}
		c.expected.sent(one.frame, read)
		c.sent[xid] = sentCall{one.done, now, len(one.frame), load, c.window.sent(now, load), read}
		frames = append(frames, one.frame)
		size += len(one.frame)
	}
	if c.waiting.len()+c.deletes.len()+len(c.lists.all) == 0 {
		c.window.idle()
	}
	c.most = max(c.most, len(c.sent))
	return frames
}

// waiters are calls that wait to leave.
type waiters interface {
	first() call // a copy: it stays until pop
	pop()
}

// nextLocked returns where the next call waits that may leave, what it adds to the window, and what it reads. It
// returns nil if none may leave. Lists that may not leave step aside.
func (c *calls) nextLocked() (waiters, int, read) {
	fixed := c.fixedLocked()
	for {
		from := c.frontLocked()
		if from == nil {
			return nil, 0, 0
		}
		one := from.first()
		read := c.expected.readOf(one.frame)
		list := from == &c.waiting && opOf(one.frame) == OpGetChildren2
		if list && c.lists.join(one) {
			from.pop()
			continue
		}
		answer, ok := c.expected.answer(one.frame, read)
		if load := len(one.frame) + answer; ok && c.window.room(load) || fixed < 0 {
			return from, load, read
		}
		if !list || ok && answer <= guessed {
			return nil, 0, 0 // what is short waits where it is
		}
		c.lists.aside(one, read)
		from.pop()
	}
}

// fixedLocked returns the bound that a test has set, and applies it.
func (c *calls) fixedLocked() int {
	if c.fixed == nil {
		return 0
	}
	n := int(c.fixed.Load())
	if n > 0 {
		c.window.calls = min(c.window.calls, n)
	}
	return n
}

// frontLocked returns where the call waits whose turn it is.
func (c *calls) frontLocked() waiters {
	switch {
	case c.deletes.len() > 0:
		return &c.deletes
	case c.lists.due(&c.expected, c.waiting.len() == 0):
		return &c.lists
	case c.waiting.len() > 0:
		return &c.waiting
	}
	return nil
}

// canLeave reports whether calls wait that may leave.
func (c *calls) canLeave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, _, _ := c.nextLocked()
	return from != nil
}

// has reports whether a request is a call that was sent.
func (c *calls) has(xid int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.sent[xid]
	return ok
}

// answer takes the answer to a call, and returns how long the request was.
func (c *calls) answer(now time.Time, xid int32, end int64, r Reply) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.sent[xid]
	if !ok {
		return 0
	}
	if delete(c.sent, xid); len(c.sent) == 0 && c.most > flightRoom {
		c.sent, c.most = nil, 0 // a map does not shrink
	}
	c.window.answered(now, one.at, one.load, one.alone)
	c.expected.answered(one.read, len(r.Body.Rest))
	c.answered = append(c.answered, answered{end, one.done, r})
	return one.size
}

// deliver passes on the answers that end by the byte at which zk.Conn has arrived.
func (c *calls) deliver(at int64) {
	for {
		c.mu.Lock()
		if len(c.answered) == 0 || c.answered[0].end > at {
			c.mu.Unlock()
			return
		}
		first := c.answered[0]
		c.answered[0] = answered{}
		if c.answered = c.answered[1:]; len(c.answered) == 0 {
			c.answered = nil
		}
		c.mu.Unlock()
		first.done(first.reply)
	}
}

// forsake ends all calls. hungUp says whether the server has ended the connection.
func (c *calls) forsake(hungUp bool, refusals *Refusals) {
	type ending struct {
		done func(Reply)
		why  error
	}
	c.mu.Lock()
	var all []ending // in the order in which they came
	for _, one := range c.answered {
		all = append(all, ending{one.done, cmp.Or(one.reply.Err, net.ErrClosed)})
	}
	longest := 0
	for _, one := range c.sent {
		longest = max(longest, one.size)
	}
	refused := func(int) error { return nil }
	if hungUp {
		refused = refusals.lost(longest)
	}
	for _, xid := range slices.Backward(slices.Sorted(maps.Keys(c.sent))) { // the numbers count down
		one := c.sent[xid]
		all = append(all, ending{one.done, cmp.Or(refused(one.size), net.ErrClosed)})
	}
	for _, one := range c.lists.all {
		for _, done := range one.done {
			all = append(all, ending{done, net.ErrClosed})
		}
	}
	for _, one := range slices.Concat(c.waiting.rest(), c.deletes.rest()) {
		all = append(all, ending{one.done, net.ErrClosed})
	}
	c.over, c.waiting, c.deletes, c.lists, c.sent, c.answered = true, line{}, line{}, listings{}, nil, nil
	c.mu.Unlock()
	for _, one := range all {
		one.done(Reply{Err: one.why})
	}
}
