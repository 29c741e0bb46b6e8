package quorum

import (
	"container/heap"
	"time"
)

// An agenda holds the events that the run loop has to run later. They run in the order of their times.
// Events with the same time run in the order in which they were added.
type agenda struct {
	events eventHeap
	asked  uint64
}

type event struct {
	at    time.Time
	order uint64
	run   func()
}

func (a *agenda) add(at time.Time, run func()) {
	a.asked++
	heap.Push(&a.events, event{at, a.asked, run})
}

// next returns the time of the next event.
func (a *agenda) next() (time.Time, bool) {
	if len(a.events) == 0 {
		return time.Time{}, false
	}
	return a.events[0].at, true
}

// runDue runs the events that are due, including events that these add and that are due at once.
func (a *agenda) runDue() {
	for {
		at, ok := a.next()
		if !ok || time.Now().Before(at) {
			return
		}
		heap.Pop(&a.events).(event).run()
	}
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(e any)   { *h = append(*h, e.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{} // so that what it refers to can be freed
	*h = (*h)[:last]
	return e
}
