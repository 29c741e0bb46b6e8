// Package watches has what a session knows of its watches: which are pending, who listens, and what an event
// or a lost connection does to them. It sends nothing.
package watches

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/news"
)

// Event is session.WatchEvent.
type Event int

const (
	Pending Event = iota
	Deleted
	Changed
	Broken
)

// Watch is that of package session.
type Watch struct {
	ready news.News // that the request which sets it has been answered
	data  []byte
	names []string // of a watch on children
	stat  *zk.Stat
	err   error

	mu    sync.Mutex
	done  chan struct{} // closed when the watch ends; nil until Done is called
	tells *telling      // the first of those to tell when the watch ends
	event int8          // a Event; the bytes from here on are in one word

	isMade bool  // by a Session
	lists  bool  // stat came with a listing; set before ready
	owner  Owner // guarded by mu
}

// Owner is what a contender says on the watch on its own node. The contenders behind it in the same session
// share that watch, so they learn without a request what the contender knows.
type Owner int8

const (
	OwnerUnknown Owner = iota // the node is another session's, or its contender says nothing
	OwnerWaits                // it will say OwnerFirst when it goes
	OwnerFirst                // it has gone, when no contender was ahead of it any more
)

// telling is a function that is called when a watch ends. Most watches have one of them, and some have
// thousands, so they are a list, which takes little memory and from which each is taken at once.
type telling struct {
	tell       func()
	prev, next *telling
}

// Made returns w. It panics if w is nil or a zero value.
func (w *Watch) Made() *Watch {
	if w == nil || !w.isMade {
		panic("session: Watch not made by Session.Watch")
	}
	return w
}

// Done returns a channel that is closed when the watch has ended. Event then returns why.
func (w *Watch) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.eventLocked() != Pending {
			close(w.done)
		}
	}
	return w.done
}

// Answered reports whether the answer to the request that sets the watch is there.
func (w *Watch) Answered() bool { return w.ready.Has() }

// Ready returns a channel that is closed when that answer is there. If the watch was not set, it has ended by
// then.
func (w *Watch) Ready() <-chan struct{} { return w.ready.Wait() }

// Result returns the node's data and stat, as the server has told them, which must not be changed. If the
// watch was not set, there is an error: zk.ErrNoNode, and the watch ends as Deleted, or another refusal or
// that of a lost connection (see core.Uncertain), and the watch ends as Broken. Call it once Ready is closed.
func (w *Watch) Result() ([]byte, *zk.Stat, error) { return w.data, w.stat, w.err }

// Data returns what Result does. It returns nothing if there was no node or no answer, or if the watch is on children.
func (w *Watch) Data() ([]byte, *zk.Stat) {
	if !w.ready.Has() || w.lists {
		return nil, nil
	}
	return w.data, w.stat
}

// Listed returns the names of the node's children and the node's stat, as the answer that set a watch on children has
// told them. Nobody may change them. Call it once Ready is closed and Result has no error.
func (w *Watch) Listed() ([]string, *zk.Stat) { return w.names, w.stat }

// Event returns what has ended the watch, or Pending.
func (w *Watch) Event() Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eventLocked()
}

// Say sets what Owner returns. Only the contender whose node is watched calls it.
func (w *Watch) Say(o Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owner = o
}

// Owner returns what the contender whose node is watched has said last.
func (w *Watch) Owner() Owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.owner
}

// Notify sends ch a value, without blocking, when the watch ends, or at once if it has ended
// already. ch should have room for one value. stop cancels that.
func (w *Watch) Notify(ch chan<- struct{}) (stop func()) {
	return w.AtEvent(func() {
		select {
		case ch <- struct{}{}:
		default:
		}
	})
}

func (w *Watch) eventLocked() Event { return Event(w.event) }

// AtEvent calls tell when the watch ends, or at once if it has ended. stop cancels that. tell runs with locks
// held: it must not block, and take no lock of a Watch.
func (w *Watch) AtEvent(tell func()) (stop func()) {
	t := w.add(tell)
	return func() { w.drop(t) }
}

// AfterEvent is that of session.Watch.
func (w *Watch) AfterEvent(f func()) (stop func() bool) {
	t := w.add(func() { go f() })
	return func() bool { return w.drop(t) }
}

// add puts a function on the list. If the watch has ended, it calls tell at once.
func (w *Watch) add(tell func()) *telling {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.eventLocked() != Pending {
		tell()
		return nil
	}
	t := &telling{tell: tell, next: w.tells}
	if t.next != nil {
		t.next.prev = t
	}
	w.tells = t
	return t
}

// drop takes t off the list, and reports whether it was there. t may be nil.
func (w *Watch) drop(t *telling) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case t == nil || t.tell == nil:
		return false
	case t.prev != nil:
		t.prev.next = t.next
	case w.tells == t:
		w.tells = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	*t = telling{}
	return w.eventLocked() == Pending
}

// fire ends the watch. The first event counts.
func (w *Watch) fire(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fireLocked(e)
}

func (w *Watch) fireLocked(e Event) {
	if w.eventLocked() != Pending {
		return
	}
	w.event = int8(e)
	for t := w.tells; t != nil; t = t.next {
		t.tell()
	}
	w.tells = nil
	if w.done != nil {
		close(w.done)
	}
}

// Seen returns a watch that an answer has set, and an event has ended unless it is Pending. Tests of what
// callers conclude from watches use it too.
func Seen(data []byte, stat *zk.Stat, event Event) *Watch {
	w := &Watch{isMade: true, data: data, stat: stat, event: int8(event)}
	w.ready.Tell()
	return w
}
