package wire

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Call is a request of the session. It may be started once.
type Call struct {
	// Frame is the request. The Conn fills in its number.
	Frame []byte
	// Check, if not nil, returns what is wrong with a well-formed answer: then the connection ends. Calls that share
	// a listing share one Check.
	Check func(*codec.Answer) error
	// First has the call leave ahead of others. It is for deletes of the session's own nodes.
	First bool
	// Done is called once, unless Withdraw has returned true, and in the order of the stream. It must not block.
	Done func(Reply)

	entry *entry
	own   entry
	alone [1]*Call
}

// Reply is the end of a [Call].
type Reply struct {
	codec.Answer // zero unless Code is CodeOK; calls may share what it points to
	Code         int32
	Zxid         int64 // the server's latest transaction
	Err          error // why there is no answer
}

var (
	// ErrNotSent means that the call never left. It matches net.ErrClosed.
	ErrNotSent = fmt.Errorf("not sent: %w", net.ErrClosed)
	// ErrTooLong means that an answer is longer than [codec.MaxFrame].
	ErrTooLong = errors.New("too long")
	// ErrLongest is matched by the end of a long call that was the longest in flight.
	ErrLongest = errors.New("the longest in flight, and servers hang up on a request that is longer than jute.maxbuffer")
)

// entry is a request, with the calls that want its answer: none for the connection's own.
type entry struct {
	frame []byte
	check func(*codec.Answer) error
	calls []*Call
	key   string     // of a listing, to share it
	in    *list.List // where it waits, or nil
	at    *list.Element
}

// waiting has the requests that have not left. The connection's own go first, and then deletes of our nodes, which
// make directories shorter and let other clients in.
type waiting struct {
	own, deletes, others list.List
	listings             map[string]*entry
}

func (w *waiting) addOwn(frame []byte) {
	e := &entry{frame: frame, in: &w.own}
	e.at = w.own.PushBack(e)
}

func (w *waiting) take(e *entry) {
	e.in.Remove(e.at)
	if w.listings[e.key] == e {
		delete(w.listings, e.key)
	}
	e.in, e.at = nil, nil
}

// Start sends calls, one right behind the other, when there is room for them. It does not block. Before the greeting,
// calls wait for it.
//
// Callers share a listing that has not left. A caller may have sent a create just before, and wants to see its node.
// So a listing goes behind all that waits when another caller joins it.
func (w *Conn) Start(calls ...*Call) {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		ending{calls, Reply{Err: ErrNotSent}}.End()
		return
	}
	for _, c := range calls {
		e := &c.own
		e.frame, e.check, e.in = c.Frame, c.Check, &w.waiting.others
		if c.First {
			e.in = &w.waiting.deletes
		}
		if codec.Op(c.Frame) == codec.OpGetChildren2 {
			e.key = string(c.Frame[8:])
			if shared := w.waiting.listings[e.key]; shared != nil && len(shared.calls) < mostShare {
				shared.calls, c.entry = append(shared.calls, c), shared
				w.waiting.others.MoveToBack(shared.at)
				continue
			}
			if w.waiting.listings == nil {
				w.waiting.listings = make(map[string]*entry)
			}
			w.waiting.listings[e.key] = e
		}
		c.alone[0] = c
		e.calls, c.entry = c.alone[:], e
		e.at = e.in.PushBack(e)
	}
	w.mu.Unlock()
	w.poke()
}

// Withdraw reports whether a call has not left. Then it never leaves, and Done is not called.
func (w *Conn) Withdraw(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := c.entry
	if e == nil || e.in == nil {
		return false
	}
	i := slices.Index(e.calls, c)
	if i < 0 {
		return false
	}
	if e.calls = slices.Delete(e.calls, i, i+1); len(e.calls) == 0 {
		w.waiting.take(e)
	}
	return true
}

// nextLocked returns the request that may leave next: one of the connection's own always may, and one call whatever
// its length.
func (w *Conn) nextLocked() *entry {
	at := cmp.Or(w.waiting.own.Front(), w.waiting.deletes.Front(), w.waiting.others.Front())
	if at == nil {
		return nil
	}
	e := at.Value.(*entry)
	if len(e.calls) == 0 || w.flying == 0 || w.flying < mostCalls && w.load+len(e.frame) <= mostBytes {
		return e
	}
	return nil
}
