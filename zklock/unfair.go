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

// WithUnfair makes the mutex the simple exclusive lock of textbooks. There is one ephemeral node, and
// the contender that creates it holds the lock. All others wait until the node is deleted, and then
// all of them try to create it. A contender that tries at the right moment gets in before others
// that have waited longer, and a contender can wait for ever. The option is for programs that want
// such barging, and for comparison.
//
// Taking a free lock costs one round trip, as with the fair mutex. But a release wakes one waiter in
// each process (a herd), and one of them gets the lock a round trip later. With 20 processes waiting,
// a release of the unfair mutex woke 20, which sent 60 requests before 19 of them waited again. A
// release of the fair mutex woke one, the next holder, which sent no request (TestWakeUps counts
// them). At most one other waiter is woken by a fair release, to list the queue once.
//
// All other guarantees of the fair mutex stay. These are the differences:
//
//   - Fair and unfair mutexes do not share a lock. At a path where it finds the other kind, a call
//     fails with [queue.ErrConflict], and never gets the lock beside it.
//   - [Mutex.Contenders] shows only the holder.
//   - TryLock also finds the mutex busy when another goroutine of the process is about to take it.
//   - All holders have nodes of the same path, so [queue.Lease.Guard] lets no write through. Use
//     [queue.Lease.Token] for fencing.
//   - A request of [Revoke] that comes late reaches the next holder.
//   - If an operator deletes the holder's node at the moment of its release, the next holder's node
//     can be deleted with it. That holder is told of the loss.
//
// No other library has such nodes, so the option cannot be combined with [WithPrefixes]. It cannot
// be combined with [WithLocalHandover] either. Default: fair.
func WithUnfair() Option {
	return option(func(c *config) error {
		c.unfair = true
		return nil
	})
}
