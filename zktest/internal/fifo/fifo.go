// Package fifo has the queue between the goroutines that read frames and those that write them.
package fifo

import "sync"

// A Queue holds values for one consumer, up to a number of bytes. It has one producer.
type Queue[T any] struct {
	limit   int // 0: none
	arrived chan struct{}
	taken   chan struct{}

	mu    sync.Mutex
	items []sized[T]
	bytes int
}

type sized[T any] struct {
	value T
	bytes int
}

// New returns a queue of so many bytes, or without a limit if limit is 0.
func New[T any](limit int) *Queue[T] {
	return &Queue[T]{limit: limit, arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
}

// Push waits until there is room, and adds a value. It returns false if done is closed first.
func (q *Queue[T]) Push(value T, bytes int, done <-chan struct{}) bool {
	for !q.tryPush(sized[T]{value, bytes}) {
		select {
		case <-q.taken:
		case <-done:
			return false
		}
	}
	wake(q.arrived)
	return true
}

func (q *Queue[T]) tryPush(it sized[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	// A single value may be longer than the limit.
	if q.limit > 0 && q.bytes > 0 && q.bytes+it.bytes > q.limit {
		return false
	}
	q.items = append(q.items, it)
	q.bytes += it.bytes
	return true
}

// Pop waits until there is a value, and takes the oldest one. It returns false if done is closed first.
func (q *Queue[T]) Pop(done <-chan struct{}) (value T, ok bool) {
	for {
		if value, ok := q.tryPop(); ok {
			wake(q.taken)
			return value, true
		}
		select {
		case <-q.arrived:
		case <-done:
			return value, false
		}
	}
}

func (q *Queue[T]) tryPop() (value T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return value, false
	}
	it := q.items[0]
	q.items[0] = sized[T]{} // so that the value can be freed
	q.items = q.items[1:]
	q.bytes -= it.bytes
	return it.value, true
}

// Last returns the value that was added last, if it is still there.
func (q *Queue[T]) Last() (value T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.items); n > 0 {
		return q.items[n-1].value, true
	}
	return value, false
}

// wake puts a token into the channel, unless there is one already.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
