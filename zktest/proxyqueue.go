package zktest

import (
	"sync"
	"time"
)

// maxQueued is how much one direction of a connection may hold back before the
// proxy stops reading, as a full TCP window would.
const maxQueued = 8 << 20

// item is a frame on its way, or, with no frame, the end of the stream.
type item struct {
	frame []byte
	req   Request   // from a client: what it is
	at    time.Time // when it arrived
}

// queue holds what has arrived in one direction and is not yet passed on. It
// has one producer and one consumer.
type queue struct {
	mu    sync.Mutex
	items []item
	size  int // bytes in items

	arrived chan struct{} // wakes the consumer
	taken   chan struct{} // wakes the producer
}

func newQueue() *queue {
	return &queue{arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// push adds an item, once there is room. It returns false when done is closed
// first.
func (q *queue) push(it item, done <-chan struct{}) bool {
	for !q.tryPush(it) {
		select {
		case <-q.taken:
		case <-done:
			return false
		}
	}
	wake(q.arrived)
	return true
}

func (q *queue) tryPush(it item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	// A single frame may be longer than the limit.
	if q.size > 0 && q.size+len(it.frame) > maxQueued {
		return false
	}
	q.items = append(q.items, it)
	q.size += len(it.frame)
	return true
}

// pop takes the oldest item, once there is one. It returns false when done is
// closed first.
func (q *queue) pop(done <-chan struct{}) (item, bool) {
	for {
		if it, ok := q.tryPop(); ok {
			wake(q.taken)
			return it, true
		}
		select {
		case <-q.arrived:
		case <-done:
			return item{}, false
		}
	}
}

func (q *queue) tryPop() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	it := q.items[0]
	q.items[0] = item{} // let go of the frame
	q.items = q.items[1:]
	q.size -= len(it.frame)
	return it, true
}

// ended reports whether the stream's end has arrived.
func (q *queue) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) > 0 && q.items[len(q.items)-1].frame == nil
}

// wake leaves a token, unless one is there.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
