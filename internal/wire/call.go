package wire

import (
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
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
	Err  error   // not nil if there was no answer
}

// Call sends a request. It fills in the request's number, does not block, and does not change the frame any
// more once done was called. A request that comes before the greeting waits for it.
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
func (w *Conn) Forsake() { w.calls.forsake() }

// calls are the calls of one connection that have not ended.
type calls struct {
	mu       sync.Mutex
	waiting  []call                // not sent yet, in order
	sent     map[int32]func(Reply) // by number
	answered []answered            // zk.Conn has not read as far, in order
	most     int                   // how many sent has had at a time since it was made
	over     bool
}

type call struct {
	frame []byte
	done  func(Reply)
}

// answered is a call with an answer that ends at a place in the stream of all bytes that came.
type answered struct {
	end   int64
	done  func(Reply)
	reply Reply
}

// post adds a call, unless the connection is over.
func (c *calls) post(one call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.waiting = append(c.waiting, one)
	}
	return !c.over
}

// together is about how many bytes of calls are written at once. All frames of a write count as sent when it begins,
// and no heartbeat goes while it lasts. So on a slow network long writes would cost the session its lease.
const together = 16 << 10

// take returns the frames of calls to send now, with the numbers that next returns. Others may have to wait for
// the next write.
func (c *calls) take(next func() int32) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	if c.sent == nil {
		c.sent = make(map[int32]func(Reply))
	}
	var frames [][]byte
	for size := 0; len(frames) < len(c.waiting) && size < together; {
		one := c.waiting[len(frames)]
		xid := next()
		binary.BigEndian.PutUint32(one.frame[4:], uint32(xid))
		frames, c.sent[xid] = append(frames, one.frame), one.done
		size += len(one.frame)
	}
	if c.waiting = slices.Delete(c.waiting, 0, len(frames)); len(c.waiting) == 0 && cap(c.waiting) > flightRoom {
		c.waiting = nil
	}
	c.most = max(c.most, len(c.sent))
	return frames
}

// wait reports whether calls wait.
func (c *calls) wait() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// has reports whether a request is a call that was sent.
func (c *calls) has(xid int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[xid] != nil
}

// answer takes the answer to a call.
func (c *calls) answer(xid int32, end int64, r Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.sent[xid]; done != nil {
		if delete(c.sent, xid); len(c.sent) == 0 && c.most > flightRoom {
			c.sent, c.most = nil, 0 // a map does not shrink
		}
		c.answered = append(c.answered, answered{end, done, r})
	}
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

func (c *calls) forsake() {
	c.mu.Lock()
	var all []func(Reply) // in the order in which they came
	for _, one := range c.answered {
		all = append(all, one.done)
	}
	for _, xid := range slices.Backward(slices.Sorted(maps.Keys(c.sent))) { // the numbers count down
		all = append(all, c.sent[xid])
	}
	for _, one := range c.waiting {
		all = append(all, one.done)
	}
	c.over, c.waiting, c.sent, c.answered = true, nil, nil, nil
	c.mu.Unlock()
	for _, done := range all {
		done(Reply{Err: net.ErrClosed})
	}
}
