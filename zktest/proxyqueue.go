package zktest

import (
	"sync"
	"time"
)

// maxQueued is the number of bytes that one direction of a connection holds back. Beyond that the
// proxy stops reading, as with a full TCP window.
const maxQueued = 8 << 20

// An item is a frame on its way. Without a frame it is the end of the stream.
type item struct {
	frame []byte
	req   Request   // the request, if the frame is a client's
	at    time.Time // when it arrived
}

// A queue holds the frames that have arrived in one direction and are not passed on yet. It has one
// producer and one consumer.
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

// push waits until there is room, and adds an item. It returns false if done is closed first.
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

// pop waits until there is an item, and takes the oldest one. It returns false if done is closed
// first.
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
	q.items[0] = item{} // so that the frame can be freed
	q.items = q.items[1:]
	q.size -= len(it.frame)
	return it, true
}

// ended reports whether the end of the stream has arrived.
func (q *queue) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) > 0 && q.items[len(q.items)-1].frame == nil
}

// wake puts a token into the channel, unless there is one already.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
