package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Call is a request of the session. It needs no goroutine. It may be started once.
type Call struct {
	// Frame is the request. The Conn fills in its number.
	Frame []byte
	// Check, if it is not nil, returns what is wrong with an answer that is well-formed and cannot be true. The connection
	// ends then. Calls that share a listing share the Check of one of them.
	Check func(*codec.Answer) error
	// First has the call leave ahead of others. It is for deletes of nodes of the session: these come to an end.
	First bool
	// Done is called once, unless Withdraw has returned true. It must not block. News.End calls it, in the order of the
	// stream, or Forsake, or Start if the connection has ended.
	Done func(Reply)

	entry *entry
	own   entry
	alone [1]*Call
}

// Reply is the end of a [Call].
type Reply struct {
	codec.Answer       // zero if Code is not CodeOK; several calls may share what it points to, and nobody may change it
	Code         int32 // of the server
	Zxid         int64 // the latest transaction that the server had carried out
	Err          error // not nil if there was no answer
}

var (
	// ErrNotSent is the error for a call that was not sent, because the connection has ended. It matches net.ErrClosed.
	ErrNotSent = fmt.Errorf("not sent: %w", net.ErrClosed)
	// ErrTooLong means that an answer is longer than [codec.MaxFrame].
	ErrTooLong = errors.New("too long")
	// ErrLongest is matched by the end of a call without an answer that was long, and the longest in flight. A server hangs up
	// without a word on a request that is longer than its jute.maxbuffer, and takes all other calls of the connection with it.
	ErrLongest = errors.New("the longest in flight, and servers hang up on a request that is longer than jute.maxbuffer")
)

// entry is a request that waits or is in flight, with the calls that want its answer.
type entry struct {
	frame      []byte
	check      func(*codec.Answer) error
	calls      []*Call
	key        string // of a listing that others may share
	first      bool
	left       bool
	prev, next *entry // in its queue
}

func (e *entry) end(r Reply) {
	for _, c := range e.calls {
		c.Done(r)
	}
}

// waiting has the calls that have not left. Deletes of our own nodes go first: they make directories shorter, and let
// other clients in.
//
// Callers that want the same listing share the next one that has not left. A caller may have sent a create just before,
// and wants to see its node. So a listing goes behind all that waits when another caller joins it.
type waiting struct {
	deletes, others queue
	lists           map[string]*entry
}

// queue has entries, first in, first out.
type queue struct{ first, last *entry }

func (q *queue) push(e *entry) {
	if e.prev = q.last; e.prev == nil {
		q.first = e
	} else {
		e.prev.next = e
	}
	q.last = e
}

func (q *queue) remove(e *entry) {
	if e.prev == nil {
		q.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

func (w *waiting) of(e *entry) *queue {
	if e.first {
		return &w.deletes
	}
	return &w.others
}

func (w *waiting) add(c *Call) {
	var key string
	if codec.Op(c.Frame) == codec.OpGetChildren2 {
		key = string(c.Frame[8:]) // behind the length and the number
		if e := w.lists[key]; e != nil && len(e.calls) < mostShare {
			e.calls, c.entry = append(e.calls, c), e
			w.others.remove(e)
			w.others.push(e)
			return
		}
	}
	c.alone[0] = c
	c.own = entry{frame: c.Frame, check: c.Check, calls: c.alone[:], key: key, first: c.First}
	c.entry = &c.own
	w.of(c.entry).push(c.entry)
	if key != "" {
		if w.lists == nil {
			w.lists = make(map[string]*entry)
		}
		w.lists[key] = c.entry
	}
}

// next returns the entry that leaves next, or nil.
func (w *waiting) next() *entry { return cmp.Or(w.deletes.first, w.others.first) }

// take removes an entry, which leaves, or never will.
func (w *waiting) take(e *entry) {
	w.of(e).remove(e)
	if e.key != "" && w.lists[e.key] == e {
		delete(w.lists, e.key)
	}
	e.left = true
}

// Start sends calls, one right behind the other, when there is room for them. It does not block. Calls that come before
// the greeting wait for it.
func (w *Conn) Start(calls ...*Call) {
	w.mu.Lock()
	over := w.over
	if !over {
		for _, c := range calls {
			w.waiting.add(c)
		}
	}
	w.mu.Unlock()
	if over {
		for _, c := range calls {
			c.Done(Reply{Err: ErrNotSent})
		}
		return
	}
	w.poke()
}

// Withdraw reports whether a call has not left. Then it never leaves, and its Done is not called.
func (w *Conn) Withdraw(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := c.entry
	if e == nil || e.left {
		return false
	}
	i := slices.Index(e.calls, c)
	if i < 0 {
		return false
	}
	e.calls = slices.Delete(e.calls, i, i+1)
	if len(e.calls) == 0 {
		w.waiting.take(e)
	}
	return true
}

// roomLocked reports whether one more call may leave. One always may, whatever its length.
func (w *Conn) roomLocked(e *entry) bool {
	return w.flying == 0 || w.flying < mostCalls && w.load+len(e.frame) <= mostBytes
}
