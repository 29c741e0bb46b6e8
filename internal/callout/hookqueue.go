package callout

import (
	"log/slog"
	"sync"
)

// hookQueue calls the hooks for locks that were lost, in order, in a goroutine of its own, which ends when
// there is nothing to call. Nobody waits for them: not the deletes, not the next holder, and not Close.
type hookQueue struct {
	log *slog.Logger

	mu      sync.Mutex
	waiting []func()
	running bool
	dropped int // since the queue was empty
}

// maxLateHooks bounds the memory for hooks that wait because one of them blocks. All locks of a session at
// the default of WithMaxNodes are lost at once, and eight such losses fit.
const maxLateHooks = 8 * 8192

// add has f called, unless too many functions wait. It does not block.
func (q *hookQueue) add(f func()) {
	if first := q.put(f); first && q.log != nil {
		q.log.Error("a hook for a lost lock does not return, and too many wait behind it; "+
			"those for further losses are not called", "waiting", maxLateHooks)
	}
}

// put reports whether f is the first function that is dropped.
func (q *hookQueue) put(f func()) (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxLateHooks {
		q.dropped++
		return q.dropped == 1
	}
	q.waiting = append(q.waiting, f)
	if !q.running {
		q.running = true
		go q.run()
	}
	return false
}

// run calls functions until none waits. They are hooks, which survive a panic and a Goexit by themselves.
func (q *hookQueue) run() {
	for {
		f, dropped := q.next()
		if dropped > 0 && q.log != nil {
			q.log.Warn("the hooks for lost locks have returned; those for some losses were not called",
				"dropped", dropped)
		}
		if f == nil {
			return
		}
		f()
	}
}

// next removes the next function. It returns nil if there is none, and how many were dropped since the last
// time.
func (q *hookQueue) next() (f func(), dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		f = q.waiting[0]
		q.waiting[0], q.waiting = nil, q.waiting[1:]
		return f, 0
	}
	dropped, q.dropped = q.dropped, 0
	q.waiting, q.running = nil, false
	return nil, dropped
}
