package callout

import (
	"log/slog"
	"sync"

	"github.com/turnstile-go/turnstile/internal/line"
)

// hookQueue calls the hooks for locks that were lost, in order, in a goroutine of its own, which ends when
// there is nothing to call. Nobody waits for them: not the deletes, not the next holder, and not Close.
type hookQueue struct {
	log   *slog.Logger
	calls line.Errands

	mu      sync.Mutex
	waiting int
	dropped int // since the queue was empty
}

// maxLateHooks bounds the memory for hooks that wait because one of them blocks. All locks of a session at
// the default of WithMaxNodes are lost at once, and eight such losses fit.
const maxLateHooks = 8 * 8192

// add has f called, unless too many functions wait. It does not block.
func (q *hookQueue) add(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting < maxLateHooks {
		q.waiting++
		q.calls.Add(func() {
			q.taken()
			f()
			q.called()
		})
		return
	}
	if q.dropped++; q.dropped == 1 && q.log != nil {
		q.log.Error("a hook for a lost lock does not return, and too many wait behind it; "+
			"those for further losses are not called", "waiting", maxLateHooks)
	}
}

func (q *hookQueue) taken() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
}

// called tells, when the last function has been called, how many were dropped.
func (q *hookQueue) called() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting > 0 || q.dropped == 0 {
		return
	}
	if q.log != nil {
		q.log.Warn("the hooks for lost locks have returned; those for some losses were not called",
			"dropped", q.dropped)
	}
	q.dropped = 0
}
