// Package outbox has the calls of one connection: it bounds those in flight (window.go), and decides which of the others
// leaves next (waiting.go), and which leave together (together.go). It sends nothing.
package outbox

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

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Config is what an [Outbox] needs to know.
type Config struct {
	Refusals *Refusals     // all connections of a session share it
	Batches  *atomic.Int64 // this too: it counts the multis of several callers
	Window   *atomic.Int32 // of calls, for tests: see *core.Manager.SetWindow
}

// Outbox has the calls of one connection that have not ended. Its methods may be called by any number of goroutines at
// once.
type Outbox struct {
	cfg Config

	mu       sync.Mutex
	window   window
	expected expected
	waiting  waiting
	caution  caution
	sent     map[int32]sentCall // by number
	counted  int                // how many of sent the server counts
	writes   int                // how many of sent could leave together with others, or have
	count    int64              // how many calls were sent
	own      int32              // the latest of the connection's own numbers
	over     bool               // nothing is sent any more
}

// sentCall is a call in flight.
type sentCall struct {
	Call
	number int64 // in the order of all calls
	at     time.Time
	load   int  // in the window
	alone  bool // see window.sent
	read   read
	write  bool // see Outbox.writes
}

// New returns an outbox that lets out one call at a time until Begin.
func New(cfg Config) *Outbox { return &Outbox{cfg: cfg, own: firstOwn} }

// Number returns a number for a request of the connection itself.
func (o *Outbox) Number() int32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ownLocked()
}

// firstOwn is where the connection's own numbers begin to count down. The numbers of calls that servers count begin at 1
// and count up. Numbers just below zero have meanings of their own.
const firstOwn = -1000

// ownLocked returns a number below zero. After the last number comes the first again. The request that had it was
// answered long ago.
func (o *Outbox) ownLocked() int32 {
	if o.own == math.MinInt32 {
		o.own = firstOwn
	}
	o.own--
	return o.own
}

// Post adds a call, unless the connection is over.
func (o *Outbox) Post(one Call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.waiting.push(one)
	}
	return !o.over
}

// Begin is called with the greeting.
func (o *Outbox) Begin(timeout time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.window.begin(timeout)
}

// together is about how many bytes of calls are written at once. All frames of a write count as sent when it begins,
// and no heartbeat goes while it lasts. So on a slow network long writes would cost the session its lease.
const together = 16 << 10

// Take returns the frames of calls to send now. Others may have to wait for the next write, or for room in the
// window. oldest is when the oldest frame in flight was sent.
func (o *Outbox) Take(now, oldest time.Time) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.window.look(now, oldest)
	var frames [][]byte
	for size := 0; size < together; {
		load, read, ok := o.nextLocked()
		if !ok {
			break
		}
		one := o.waiting.pop()
		write := one.Batch != nil
		if write {
			one = o.joinedLocked(one)
			load = len(one.Frame)
			o.writes++
		}
		o.count++
		xid := o.xidLocked()
		binary.BigEndian.PutUint32(one.Frame[4:], uint32(xid))
		if o.sent == nil {
			o.sent = make(map[int32]sentCall)
		}
		o.expected.sent(one.Frame, read)
		o.sent[xid] = sentCall{one, o.count, now, load, o.window.sent(now, load), read, write}
		frames = append(frames, one.Frame)
		size += len(one.Frame)
	}
	if o.waiting.empty() {
		o.window.idle()
	}
	return frames
}

// nextLocked looks for the next call that may leave, which is at the front of the outbox then. It returns what the call
// adds to the window, and what it reads.
func (o *Outbox) nextLocked() (load int, r read, ok bool) {
	fixed := o.fixedLocked()
	for {
		write := fixed < 0 || o.mayWriteLocked()
		one := o.waiting.front(&o.expected, write)
		if one == nil {
			return 0, 0, false
		}
		if one.Batch != nil && !write {
			o.waiting.sort()
			continue
		}
		r = o.expected.readOf(one.Frame)
		answer, may := o.expected.answer(one.Frame, r)
		load = len(one.Frame) + answer
		short := may && answer <= guessed
		if may && o.window.room(load) && (short || !o.waiting.listAhead()) || fixed < 0 {
			return load, r, true
		}
		if !o.waiting.yield(r, short) {
			return 0, 0, false
		}
	}
}

// mayWriteLocked reports whether a call may leave that could leave together with others.
func (o *Outbox) mayWriteLocked() bool {
	return o.writes < mostBatches || !o.window.wanted() || o.caution.left > 0 || o.waiting.fills()
}

// joinedLocked returns the call, or a multi of it and others that wait. While none has had to wait for room, it is alone.
func (o *Outbox) joinedLocked(one Call) Call {
	if !o.window.wanted() || o.caution.left > 0 {
		o.caution.spend()
		return one
	}
	limit := min(batchBytes, o.window.bytes-o.window.load)
	if parts := o.waiting.gather(one, limit, &o.expected); len(parts) > 1 {
		return o.multi(parts)
	}
	return one
}

// multi returns parts as one call. Each part gets its own result.
func (o *Outbox) multi(parts []Call) Call {
	number := o.cfg.Batches.Add(1)
	for _, one := range parts {
		one.Batch.Store(number)
	}
	all := Multi(parts)
	all.Done = func(r Reply) { o.endParts(parts, r) }
	return all
}

// endParts ends the parts of a multi. If it was refused, it has changed nothing, and the answer is final for none of
// its parts: they leave again, ahead of all that waits.
func (o *Outbox) endParts(parts []Call, r Reply) {
	switch {
	case r.Err != nil || saysNothing(r.Code):
		for _, one := range parts {
			one.Done(r)
		}
	case r.Code != codec.CodeOK || anyRefused(r.Results):
		o.again(parts)
	default:
		o.mu.Lock()
		o.caution.succeeded()
		o.mu.Unlock()
		for i, one := range parts {
			one.Done(Reply{Answer: codec.Answer{Path: r.Results[i].Path}})
		}
	}
}

// again has the parts of a refused multi leave again, each alone.
func (o *Outbox) again(parts []Call) {
	o.mu.Lock()
	over := o.over
	o.caution.failed()
	for _, one := range parts {
		if one.Batch = nil; !over {
			o.waiting.again.Push(one)
		}
	}
	o.mu.Unlock()
	if over { // closeSession was sent meanwhile
		for _, one := range parts {
			one.Done(Reply{Err: ErrNotSent})
		}
	}
}

// fixedLocked returns the bound that a test has set, and applies it.
func (o *Outbox) fixedLocked() int {
	n := int(o.cfg.Window.Load())
	if n > 0 {
		o.window.calls = min(o.window.calls, n)
	}
	return n
}

// CanLeave reports whether the goroutine that writes has something to do: whether calls wait that may leave, or that
// have ended.
func (o *Outbox) CanLeave() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _, ok := o.nextLocked()
	return ok || len(o.waiting.ended) > 0
}

// EndGivenUp ends the calls whose callers have given up, as far as they have been found.
func (o *Outbox) EndGivenUp() {
	o.mu.Lock()
	ended := o.waiting.ended
	o.waiting.ended = nil
	o.mu.Unlock()
	for _, one := range ended {
		one.Done(Reply{Err: ErrGivenUp})
	}
}

// xidLocked returns the number of the call that leaves. Servers count requests with positive numbers towards their limit.
// Over its limit (globalOutstandingLimit), a server reads nothing behind a request that it counts until that is answered.
// So only one of the calls in flight counts: if all did, a heartbeat behind them would wait for the sum of their times. The
// window cannot prevent that, because it learns of it too late.
func (o *Outbox) xidLocked() int32 {
	if o.counted > 0 {
		return o.ownLocked()
	}
	o.counted++
	return xidOfCall(o.count)
}

// xidOfCall returns the positive number of the n-th call of a connection, counted from 1. After the last number comes the
// first again: the request that had it was answered long ago.
func xidOfCall(n int64) int32 { return int32((n-1)%math.MaxInt32) + 1 }

// Find returns the call in flight with that number.
func (o *Outbox) Find(xid int32) (Call, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, ok := o.sent[xid]
	return one.Call, ok
}

// Answered takes note of the answer to a call, if one with that number is in flight. size is that of the answer.
func (o *Outbox) Answered(now time.Time, xid int32, size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, ok := o.sent[xid]
	if !ok {
		return
	}
	if xid > 0 {
		o.counted--
	}
	if one.write {
		o.writes--
	}
	delete(o.sent, xid)
	o.window.answered(now, one.at, one.load, one.alone)
	o.expected.answered(one.read, size)
	o.cfg.Refusals.answered(len(one.Frame))
}

// Stop ends the calls that wait, and all that come from now on.
func (o *Outbox) Stop() {
	o.mu.Lock()
	all := o.waiting.all()
	o.over, o.waiting = true, waiting{ended: o.waiting.ended}
	o.mu.Unlock()
	o.EndGivenUp()
	for _, one := range all {
		one.Done(Reply{Err: ErrNotSent})
	}
}

// Forsake ends all calls: those that were sent in the order in which they were, and then the others. Further calls fail at
// once. hungUp says whether the server has ended the connection.
func (o *Outbox) Forsake(hungUp bool) {
	o.mu.Lock()
	sent := slices.SortedFunc(maps.Values(o.sent), func(a, b sentCall) int { return cmp.Compare(a.number, b.number) })
	o.over, o.sent = true, nil
	o.mu.Unlock()
	refused := func(int) error { return nil }
	if hungUp && len(sent) > 0 {
		longest := slices.MaxFunc(sent, func(a, b sentCall) int { return cmp.Compare(len(a.Frame), len(b.Frame)) })
		refused = o.cfg.Refusals.lost(len(longest.Frame))
	}
	for _, one := range sent {
		one.Done(Reply{Err: cmp.Or(refused(len(one.Frame)), net.ErrClosed)})
	}
	o.Stop()
}
