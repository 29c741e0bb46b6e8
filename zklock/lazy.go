package zklock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
)

// WithLazyRelease makes Unlock keep the mutex's place in the queue for up to d, in case this process
// wants the mutex again. A Lock in that time takes microseconds and sends no request. For other
// processes, of any library, the mutex looks taken until they ask for it: a node that they create is
// reported to this process, which gives a place that is not in use up at once, and one in use at its
// Unlock. So they wait one round trip longer than for a free mutex.
//
// The option is for a mutex that one process takes again and again, while others want it now and then.
// After a place was taken away before it was used again, the next places are not kept: first one, and
// more each time that happens again, up to 64. So processes that take turns lose next to nothing.
//
// Only a use keeps the place. A call that does not return the mutex leaves no place behind: for example a Lock or
// TryLock of a [MultiLock] that does not get its other locks, or a Lock that finds that another goroutine has lost the
// mutex and has not unlocked it.
//
// d counts from each Unlock. It must be more than 0 and at most a minute. A place is kept for a session
// timeout at most, and the first Unlock a session timeout after the mutex was taken from the servers
// gives it up. Default: Unlock gives the mutex up.
//
// These are the differences from a mutex without the option, and the price:
//
//   - All goroutines that use this Mutex share one place. As long as no other process has come, Unlock
//     hands the mutex over to the next goroutine, in the order in which they came, without a request.
//     From then on it hands the mutex over as often as [WithLocalHandover] says, or not at all without
//     that option. What else WithLocalHandover says of a shared place holds for this option too.
//   - All holds of one place have the same [queue.Lease.Path], [queue.Lease.Guard] and
//     [queue.Lease.Token]. A store that compares tokens must accept a token equal to the last one.
//   - Held is false while the place is only kept. In [Mutex.Contenders], a place that this process keeps
//     has Kept set. Other processes see it as held.
//   - TryLock of a process with this module waits if it finds only a place that may be kept, so that a place that nobody
//     uses does not make the mutex busy: for a quarter of a second at most. That is
//     enough if this process is within 50 ms of the servers, one way. The name of the node tells: "-keep-" is in it. If
//     this process uses the mutex, TryLock gets it at the Unlock, or says busy after that time. It says so at once if
//     another contender waits already, or if the holder is of its own session. For other libraries the mutex is busy
//     until the place is gone.
//   - A process that ends without [session.Manager.Close], or hangs, blocks others until its session
//     expires, also by mutexes that it does not hold.
//   - The session of a kept place sends heartbeats as for one that is held, and [session.WithMaxNodes]
//     counts the place. At most half of the nodes of a session are kept places: beyond that, the place that
//     was unused for longest is given up. [session.Manager.Close] gives up all.
//   - If a kept place is lost, with the session or because an operator deletes its node, it is simply
//     gone: the next Lock queues anew.
func WithLazyRelease(d time.Duration) Option {
	return option(func(c *config) error {
		c.keep = d
		return share.CheckKeep(d)
	})
}
