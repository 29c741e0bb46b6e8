package zklock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
)

// Option changes a [Mutex]. A nil option and a bad value are errors of [New].
type Option interface{ apply(*share.Options) error }

type option func(*share.Options) error

func (o option) apply(to *share.Options) error { return o(to) }

// WithName sets a name for the mutex in metrics, spans and hooks, such as "invoice" for the mutex at
// /locks/invoice-42. Each name makes time series of its own, so give all mutexes that do one job the same name. A
// name is text that can be printed, of 1 to 200 bytes. Default: none, and metrics only tell kinds of lock apart.
func WithName(text string) Option {
	return option(func(o *share.Options) error { return o.SetName(text) })
}

// WithAsyncRelease makes Unlock, and the end of Do, return once the release is on its way to the servers. Default:
// Unlock waits for their answer: see [Mutex.Unlock].
//
// A short Lock and Unlock then take one round trip in place of two. The release leaves ahead of everything else that
// this process has to send, so its next Lock does not find the node of the last one. This is the price:
//
//   - Others can lock when the servers have carried the release out, usually half a round trip later. If the
//     connection is lost, that is when this process has another one, or when its session expires. Until then, a
//     TryLock of this process can find the mutex busy too.
//   - If the servers refuse to delete the node, as with zk.ErrNoAuth, only the log and the Release hook of
//     [session.Trace] tell, and the mutex stays taken.
//   - If a program ends before [session.Manager.Close] has returned nil, the mutex can be taken until the session
//     expires.
func WithAsyncRelease() Option { return option((*share.Options).SetAsync) }

// WithLocalHandover lets all goroutines that use this Mutex share one place in the queue. When it is their turn, the
// goroutine that came first gets the mutex, and each holder hands it to the next, in microseconds and without a
// request. After n hand-overs, or when no goroutine waits any more, the turn ends, and goroutines that still wait get
// a new place at the end of the queue. n must be at least 1. Default: each goroutine has a place of its own.
//
// So the mutex is first come, first served within a process, and turn by turn among processes. These are the other
// differences:
//
//   - All holds of one turn have the same node and the same [queue.Lease.Token]. A store must accept a token equal to
//     the last.
//   - When the session or the node is lost, the holder's lease is lost, and the goroutines that wait go on waiting.
//     An error of the shared contender, such as [queue.ErrConflict], goes to all that wait.
//   - TryLock finds the mutex busy, and asks no server, while another goroutine of this Mutex holds it or waits for
//     it.
//   - [Mutex.Contenders] shows one contender for all goroutines, and can show none between two turns.
//   - A request to give the lock up ([Revoke]) goes to the holder that is there, and ends the turn.
func WithLocalHandover(n int) Option {
	return option(func(o *share.Options) error {
		if n < 1 {
			return misuse.Invalidf("WithLocalHandover(%d): want at least 1", n)
		}
		o.Handovers = n
		return nil
	})
}

// WithLazyRelease makes Unlock keep the mutex's place in the queue for up to d, in case this process wants the mutex
// again. A Lock in that time takes microseconds and sends no request. For other processes, of any library, the mutex
// looks taken until they ask for it: a node that they create makes this process give up a place that is not in use at
// once, and one in use at its Unlock. So they wait one round trip longer than for a free mutex.
//
// The option is for a mutex that one process takes again and again, while others want it now and then. After a place
// was taken away before it was used again, the next one is not kept, and more each time that happens again, up to 64.
// So processes that take turns lose next to nothing.
//
// d counts from each Unlock. It must be more than 0 and at most a minute. The first Unlock that comes a session
// timeout or more after the place was taken gives it up. Default: Unlock gives the mutex up. docs/performance.md in
// the repository has the price. These are the differences:
//
//   - All goroutines that use this Mutex share one place. As long as no other process has come, Unlock hands the
//     mutex over to the next goroutine without a request. From then on it hands it over as [WithLocalHandover] says,
//     or not at all.
//   - Held is false while the place is only kept, and [Mutex.Contenders] says so with Kept. Other processes see it as
//     held. A TryLock of this module waits for it, unless another contender waits already or the holder is of its own
//     session.
//   - A process that ends without [session.Manager.Close], or hangs, blocks others until its session expires, also by
//     mutexes that it does not hold.
//   - A kept place costs heartbeats, and [session.WithNodeLimits] counts it. At most half of the nodes of a session
//     are kept: beyond that, the place unused for longest is given up.
func WithLazyRelease(d time.Duration) Option {
	return option(func(o *share.Options) error { return o.SetKeep(d) })
}
