package wire

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The session's requests. A request needs no goroutine, and those that come together are written together.

// Call is a request of the session.
type Call struct {
	// Frame is the request. [Conn.Call] fills in its number, and does not change it any more once Done was called.
	Frame []byte
	// Check, if it is not nil, returns what is wrong with an answer that is well-formed and cannot be true. The
	// connection ends then, as with a malformed answer. The goroutine that reads calls it, and it must not block.
	Check func(*Answer) error
	// Done is called once: with the answer, or with an error after [Conn.Forsake]. It is called by the goroutine that
	// reads, or by the one that calls Forsake or Call, and must not block.
	Done func(Reply)
}

// Reply is the end of a [Call].
type Reply struct {
	Answer       // zero if Code is not CodeOK; several calls may share what it points to, and nobody may change it
	Code   int32 // of the server
	Err    error // not nil if there was no answer; matches ErrTooLong if the call is the reason
}

// Call sends a request when the window has room for it (window.go). It does not block. A request that comes before the
// greeting waits for it. Requests leave in the order in which they come, with two exceptions. Deletes go ahead of
// other requests that wait for room: they make directories shorter, and let other clients in. Lists of children may
// leave later, and together (listings.go).
func (w *Conn) Call(c Call) {
	if !w.calls.post(c) {
		c.Done(Reply{Err: net.ErrClosed})
		return
	}
	w.poke()
}

// CloseSession asks the server to close the session, ahead of all that waits. Events.Closed tells the answer, after which
// the server ends the connection.
func (w *Conn) CloseSession() {
	w.mu.Lock()
	if !w.greeted.IsZero() {
		w.urgent = append(w.urgent, CloseFrame(w.xidLocked()))
	}
	w.mu.Unlock()
	w.poke()
}

// poke wakes the goroutine that writes.
func (w *Conn) poke() {
	select {
	case w.posted <- struct{}{}:
	default:
	}
}

// Forsake ends the calls that have no answer, in the order in which they came. Further calls fail at once. It must be
// called when Serve has returned, or will not be called.
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
	counted  int                // how many of sent the server counts
	most     int                // how many sent has had at a time since it was made
	count    int64              // how many calls were sent
	over     bool
}

// sentCall is a call in flight. The zero value is none.
type sentCall struct {
	Call
	number int64 // in the order of all calls
	at     time.Time
	size   int  // of the request
	load   int  // in the window
	alone  bool // see window.sent
	read   read
}

func (c *sentCall) check(a *Answer) error {
	if c.Check == nil {
		return nil
	}
	return c.Check(a)
}

func (c *sentCall) done(r Reply) {
	if c.Done != nil {
		c.Done(r)
	}
}

// line has calls in order.
type line struct {
	all  []Call
	gone int // how many at the beginning of all have left
}

func (l *line) len() int     { return len(l.all) - l.gone }
func (l *line) first() Call  { return l.all[l.gone] }
func (l *line) rest() []Call { return l.all[l.gone:] }

func (l *line) push(one Call) {
	if l.gone > len(l.all)/2 && len(l.all) == cap(l.all) {
		n := copy(l.all, l.all[l.gone:])
		clear(l.all[n:])
		l.all, l.gone = l.all[:n], 0
	}
	l.all = append(l.all, one)
}

func (l *line) pop() {
	l.all[l.gone] = Call{}
	if l.gone++; l.gone == len(l.all) {
		l.all, l.gone = l.all[:0], 0
		if cap(l.all) > flightRoom {
			l.all = nil
		}
	}
}

// post adds a call, unless the connection is over.
func (c *calls) post(one Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
	case opOf(one.Frame) == OpDelete && (c.window.wantsCalls || c.window.wantsBytes):
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

// take returns the frames of calls to send now. Others may have to wait for the next write, or for room in the
// window. oldest is when the oldest frame in flight was sent. own returns a number below zero.
func (c *calls) take(now, oldest time.Time, own func() int32) [][]byte {
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
		c.count++
		xid := c.xidLocked(own)
		binary.BigEndian.PutUint32(one.Frame[4:], uint32(xid))
		if c.sent == nil {
			c.sent = make(map[int32]sentCall)
		}
		c.expected.sent(one.Frame, read)
		c.sent[xid] = sentCall{one, c.count, now, len(one.Frame), load, c.window.sent(now, load), read}
		frames = append(frames, one.Frame)
		size += len(one.Frame)
	}
	if c.waiting.len()+c.deletes.len()+len(c.lists.all) == 0 {
		c.window.idle()
	}
	c.most = max(c.most, len(c.sent))
	return frames
}

// waiters are calls that wait to leave.
type waiters interface {
	first() Call // a copy: it stays until pop
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
		read := c.expected.readOf(one.Frame)
		list := from == &c.waiting && opOf(one.Frame) == OpGetChildren2
		if list && c.lists.join(one) {
			from.pop()
			continue
		}
		answer, ok := c.expected.answer(one.Frame, read)
		if load := len(one.Frame) + answer; ok && c.window.room(load) || fixed < 0 {
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

// xidLocked returns the number of the call that leaves. Servers count requests with positive numbers towards their limit.
// Over its limit, a server reads nothing behind a request that it counts until that is answered. So only one of the
// calls in flight counts: if all did, a heartbeat behind them would wait for the sum of their times.
func (c *calls) xidLocked(own func() int32) int32 {
	if c.counted > 0 {
		return own()
	}
	c.counted++
	return xidOfCall(c.count)
}

// xidOfCall returns the positive number of the n-th call of a connection, counted from 1. After the last number comes the
// first again: the request that had it was answered long ago.
func xidOfCall(n int64) int32 { return int32((n-1)%math.MaxInt32) + 1 }

// find returns the call in flight with that number.
func (c *calls) find(xid int32) sentCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[xid]
}

// answered takes note of the answer to a call, if one with that number is in flight. size is that of the answer.
func (c *calls) answered(now time.Time, xid int32, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.sent[xid]
	if !ok {
		return
	}
	if xid > 0 {
		c.counted--
	}
	if delete(c.sent, xid); len(c.sent) == 0 && c.most > flightRoom {
		c.sent, c.most = nil, 0 // a map does not shrink
	}
	c.window.answered(now, one.at, one.load, one.alone)
	c.expected.answered(one.read, size)
}

// forsake ends all calls. hungUp says whether the server has ended the connection.
func (c *calls) forsake(hungUp bool, refusals *Refusals) {
	c.mu.Lock()
	sent := slices.SortedFunc(maps.Values(c.sent), func(a, b sentCall) int { return cmp.Compare(a.number, b.number) })
	waiting := slices.Concat(c.lists.calls(), c.waiting.rest(), c.deletes.rest())
	c.over, c.waiting, c.deletes, c.lists, c.sent = true, line{}, line{}, listings{}, nil
	c.mu.Unlock()
	refused := func(int) error { return nil }
	if hungUp && len(sent) > 0 {
		longest := slices.MaxFunc(sent, func(a, b sentCall) int { return cmp.Compare(a.size, b.size) })
		refused = refusals.lost(longest.size)
	}
	for _, one := range sent {
		one.Done(Reply{Err: cmp.Or(refused(one.size), net.ErrClosed)})
	}
	for _, one := range waiting {
		one.Done(Reply{Err: net.ErrClosed})
	}
}
