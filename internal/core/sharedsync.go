package core

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// syncs lets callers share a sync. When a connection is lost, the replies to many requests can be lost with
// it. All of their callers have to sync before they look for what became of them. One sync that was sent
// after the loss is enough for all of them, as long as its connection lasts.
type syncs struct {
	mu   sync.Mutex
	sent int64       // how many there were
	next *sharedSync // not sent yet; nil if nobody waits for one
	last *sharedSync // the latest that was sent; nil before the first
}

type sharedSync struct {
	done   chan struct{} // closed when the caller that sends the sync has returned
	number int64         // which one it is, counted from 1; set when it is sent
	ok     bool          // it was answered; set before done is closed
	over   *wire.Conn    // the connection over which it was answered; set before done is closed
}

// mark returns a number for now. Syncs that are sent later have higher numbers.
func (t *syncs) mark() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent
}

// join returns the sync to share, and whether the caller has to send it. It must be sent after the mark.
// One that was answered counts only as long as its connection is the present one.
func (t *syncs) join(after int64, present *wire.Conn) (one *sharedSync, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && t.last.number > after && t.last.serves(present) {
		return t.last, false
	}
	if first = t.next == nil; first {
		t.next = &sharedSync{done: make(chan struct{})}
	}
	return t.next, first
}

// serves reports whether a sync that was sent is under way, or was answered over this connection.
func (one *sharedSync) serves(present *wire.Conn) bool {
	select {
	case <-one.done:
		return one.ok && one.over != nil && one.over == present
	default:
		return true
	}
}

// send is called when a sync is about to be sent, for the first time or again.
func (t *syncs) send(one *sharedSync) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == one {
		t.next = nil
		t.sent++
		one.number, t.last = t.sent, one
	}
}

// leave keeps further callers from joining a sync that will not be sent.
func (t *syncs) leave(one *sharedSync) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == one {
		t.next = nil
	}
}
