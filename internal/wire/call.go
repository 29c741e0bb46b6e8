package wire

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// The session's requests. A request needs no goroutine, and those that come together are written together.

// Call is a request of the session.
type Call struct {
	// Frame is the request. [Conn.Call] fills in its number, and does not change it any more once Done was called.
	Frame []byte
	// Check, if it is not nil, returns what is wrong with an answer that is well-formed and cannot be true. The
	// connection ends then, as with a malformed answer. The goroutine that reads calls it, and it must not block.
	Check func(*codec.Answer) error
	// Done is called once: with the answer, or with an error. It is called by one of the goroutines of the connection,
	// or by the one that calls Forsake, CloseSession or Call, and must not block.
	Done func(Reply)
	// GivenUp, if it is not nil, is closed when the caller has given up. A call that has not left by then never leaves.
	GivenUp <-chan struct{}
	// Batch, if it is not nil, says that the call may be sent in one multi with others that have it: the call is a create
	// or a delete that will hardly be refused. The number of the multi is stored there. Multis are counted from 1, by
	// Config.Batches.
	Batch *atomic.Int64
}

func (c *Call) gone() bool {
	select {
	case <-c.GivenUp:
		return true
	default:
		return false
	}
}

// Reply is the end of a [Call].
type Reply struct {
	codec.Answer       // zero if Code is not CodeOK; several calls may share what it points to, and nobody may change it
	Code         int32 // of the server
	Err          error // not nil if there was no answer; matches ErrTooLong if the call is the reason
}

var (
	// ErrGivenUp is the error for a call that was not sent, because its caller has given up.
	ErrGivenUp = errors.New("given up before it was sent")
	// ErrNotSent is the error for a call that was not sent, because the connection has ended. It matches net.ErrClosed.
	ErrNotSent = fmt.Errorf("not sent: %w", net.ErrClosed)
)

// Call sends a request when the window has room for it (window.go). It does not block. A request that comes before the
// greeting waits for it. Requests leave in the order in which they come, as long as none has to wait for room:
// see outbox.go.
func (w *Conn) Call(c Call) {
	if !w.calls.post(c) {
		c.Done(Reply{Err: ErrNotSent})
		return
	}
	w.poke()
}

// CloseSession asks the server to close the session. What waits is not sent any more. Events.Closed tells the answer, after
// which the server ends the connection.
func (w *Conn) CloseSession() {
	w.mu.Lock()
	if !w.greeted.IsZero() {
		w.urgent = append(w.urgent, codec.CloseFrame(w.xidLocked()))
	}
	w.mu.Unlock()
	w.calls.stop()
	w.poke()
}

// poke wakes the goroutine that writes.
func (w *Conn) poke() {
	select {
	case w.posted <- struct{}{}:
	default:
	}
}

// Forsake ends the calls that have no answer: those that were sent in the order in which they were, and then the
// others. Further calls fail at once. It must be called when Serve has returned, or will not be called.
func (w *Conn) Forsake() { w.calls.forsake(w.hungUp.Load(), w.cfg.Refusals) }

// calls are the calls of one connection that have not ended.
type calls struct {
	mu       sync.Mutex
	window   window
	fixed    *atomic.Int32 // see Config.Window
	batches  *atomic.Int64 // see Config.Batches
	expected expected
	out      outbox
	caution  caution
	sent     map[int32]sentCall // by number
	counted  int                // how many of sent the server counts
	writes   int                // how many of sent could leave together with others, or have
	most     int                // how many sent has had at a time since it was made
	count    int64              // how many calls were sent
	over     bool               // nothing is sent any more
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
	write  bool // see calls.writes
}

func (c *sentCall) check(a *codec.Answer) error {
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

// post adds a call, unless the connection is over.
func (c *calls) post(one Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.out.push(one)
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
		load, read, ok := c.nextLocked()
		if !ok {
			break
		}
		one := c.out.pop()
		write := one.Batch != nil
		if write {
			one = c.joinedLocked(one)
			load = len(one.Frame)
			c.writes++
		}
		c.count++
		xid := c.xidLocked(own)
		binary.BigEndian.PutUint32(one.Frame[4:], uint32(xid))
		if c.sent == nil {
			c.sent = make(map[int32]sentCall)
		}
		c.expected.sent(one.Frame, read)
		c.sent[xid] = sentCall{one, c.count, now, len(one.Frame), load, c.window.sent(now, load), read, write}
		frames = append(frames, one.Frame)
		size += len(one.Frame)
	}
	if c.out.empty() {
		c.window.idle()
	}
	c.most = max(c.most, len(c.sent))
	return frames
}

// nextLocked looks for the next call that may leave, which is at the front of the outbox then. It returns what the call
// adds to the window, and what it reads.
func (c *calls) nextLocked() (load int, r read, ok bool) {
	fixed := c.fixedLocked()
	for {
		write := fixed < 0 || c.mayWriteLocked()
		one := c.out.front(&c.expected, write)
		if one == nil {
			return 0, 0, false
		}
		if one.Batch != nil && !write {
			c.out.sort()
			continue
		}
		r = c.expected.readOf(one.Frame)
		answer, may := c.expected.answer(one.Frame, r)
		load = len(one.Frame) + answer
		short := may && answer <= guessed
		if may && c.window.room(load) && (short || !c.out.listAhead()) || fixed < 0 {
			return load, r, true
		}
		if !c.out.yield(r, short) {
			return 0, 0, false
		}
	}
}

// mayWriteLocked reports whether a call may leave that could leave together with others.
func (c *calls) mayWriteLocked() bool {
	return c.writes < mostBatches || !c.window.wanted() || c.caution.left > 0 || c.out.fills()
}

// joinedLocked returns the call, or a multi of it and others that wait. While none has had to wait for room, it is alone.
func (c *calls) joinedLocked(one Call) Call {
	if !c.window.wanted() || c.caution.left > 0 {
		c.caution.spend()
		return one
	}
	limit := min(batchBytes, c.window.bytes-c.window.load)
	if parts := c.out.gather(one, limit, &c.expected); len(parts) > 1 {
		return c.multi(parts)
	}
	return one
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

// canLeave reports whether the goroutine that writes has something to do: whether calls wait that may leave, or that
// have ended.
func (c *calls) canLeave() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, ok := c.nextLocked()
	return ok || len(c.out.ended) > 0
}

// endGivenUp ends the calls whose callers have given up, as far as they have been found.
func (c *calls) endGivenUp() {
	c.mu.Lock()
	ended := c.out.ended
	c.out.ended = nil
	c.mu.Unlock()
	for _, one := range ended {
		one.Done(Reply{Err: ErrGivenUp})
	}
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
	if one.write {
		c.writes--
	}
	if delete(c.sent, xid); len(c.sent) == 0 && c.most > flightRoom {
		c.sent, c.most = nil, 0 // a map does not shrink
	}
	c.window.answered(now, one.at, one.load, one.alone)
	c.expected.answered(one.read, size)
}

// stop ends the calls that wait, and all that come from now on.
func (c *calls) stop() {
	c.mu.Lock()
	waiting := c.out.all()
	c.over, c.out = true, outbox{ended: c.out.ended}
	c.mu.Unlock()
	c.endGivenUp()
	for _, one := range waiting {
		one.Done(Reply{Err: ErrNotSent})
	}
}

// forsake ends all calls. hungUp says whether the server has ended the connection.
func (c *calls) forsake(hungUp bool, refusals *Refusals) {
	c.mu.Lock()
	sent := slices.SortedFunc(maps.Values(c.sent), func(a, b sentCall) int { return cmp.Compare(a.number, b.number) })
	c.over, c.sent = true, nil
	c.mu.Unlock()
	refused := func(int) error { return nil }
	if hungUp && len(sent) > 0 {
		longest := slices.MaxFunc(sent, func(a, b sentCall) int { return cmp.Compare(a.size, b.size) })
		refused = refusals.lost(longest.size)
	}
	for _, one := range sent {
		one.Done(Reply{Err: cmp.Or(refused(one.size), net.ErrClosed)})
	}
	c.stop()
}
