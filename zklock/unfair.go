package zklock

import (
	"github.com/turnstile-go/turnstile/kinds"
)

// unfair is the kind of a mutex without a queue.
var unfair = &kinds.Kind{
	Name:     "unfair",
	Prefixes: []string{kinds.PrefixUnfair},
	Unfair:   true,
}

// WithUnfair makes the mutex the simple exclusive lock of textbooks, which has no queue. A contender that does not find
// the mutex free leaves at once, and waits without a node until the holder is gone. Then all that wait try again. A
// contender that tries at the right moment gets in before others that have waited longer, and a contender can wait for ever.
// A process that takes the mutex again and again, each time for less than a round trip, can keep it from all others. The
// option is for programs that want such barging, and for comparison.
//
// Taking a free lock costs one round trip, as with the fair mutex. But a release wakes one waiter of
// each Mutex (a herd), and the quickest of them gets the lock a round trip later. With 20 processes waiting,
// a release of the unfair mutex woke 20, which sent 79 requests before 19 of them waited again. A
// release of the fair mutex woke one, the next holder, which sent no request (TestWakeUps counts
// them). At most one other waiter is woken by a fair release, to list the queue once.
//
// All other guarantees of the fair mutex stay. These are the differences:
//
//   - Fair and unfair mutexes do not share a lock. At a path where it finds the other kind, a call
//     fails with [queue.ErrConflict], and never gets the lock beside it.
//   - [Mutex.Contenders] shows the holder, and those that are about to leave.
//   - TryLock also finds the mutex busy when another contender is about to leave, or another goroutine tries to take this Mutex.
//     So processes that call TryLock all the time can keep each other out of a free mutex: 100 of them did, each about every
//     10 ms. With Lock they do not, nor with [WithReadFirst].
//
// No other library has such nodes, so the option cannot be combined with [WithPrefixes]. It cannot
// be combined with [WithLocalHandover] or [WithMaxWaiters] either. Default: fair.
func WithUnfair() Option {
	return option(func(c *config) error {
		c.unfair = true
		return nil
	})
}
