package zklock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/share"
)

// Option changes a [Mutex]. [New] returns an error that matches [session.ErrInvalid] for an option that is nil or has a
// bad value.
type Option interface{ apply(*share.Options) error }

type option func(*share.Options) error

func (o option) apply(to *share.Options) error { return o(to) }

// WithName sets a name for the mutex in metrics and spans, such as "invoice" for the mutex at /locks/invoice-42. It is
// zklock.name in package otelzk, package lockz shows it, and hooks get it in a [session.AcquireInfo] and a
// [session.HoldInfo]. The name stays in this process: mutexes at one path are one lock, whatever their names are. Each
// name makes time series of its own, so give all mutexes that do one job the same name, and have few names. Spans tell
// one mutex from another by its path, and one acquisition from another by its label ([queue.WithLabel]).
//
// A name is text that can be printed, of 1 to 200 bytes. Default: none, and metrics only tell kinds of lock apart.
func WithName(text string) Option {
	return option(func(o *share.Options) error { return o.SetName(text) })
}

// WithAsyncRelease makes Unlock return once the release is on its way to the servers. Default: Unlock waits for the
// servers' answer, for a second at most: see [Mutex.Unlock]. The option holds for the end of [Mutex.Do] and [Mutex.TryDo]
// and for the Unlock of a Locker too, but not for [queue.Lease.Release].
//
// A short Lock and Unlock then take one round trip in place of two. The release leaves ahead of everything else that this
// process has to send, so its next Lock does not find the node of the last one. This is the price:
//
//   - That Unlock has returned does not mean that others can lock. They can when the servers have carried the release
//     out, usually half a round trip later. If the connection is lost, that is when this process has another one, or when
//     its session expires. Until then, a TryLock of this process can find the mutex busy too.
//   - Unlock does not return what the servers say. If a server refuses to delete the node, as with zk.ErrNoAuth, the log
//     and the Release hook of [session.Trace] tell. The mutex stays taken meanwhile.
//   - The release is certain when [session.Manager.Close] has returned nil. If Close returns an error, or a program ends
//     without Close, the mutex can be taken until the session expires.
func WithAsyncRelease() Option { return option((*share.Options).SetAsync) }

// WithLocalHandover lets all goroutines that use this Mutex share one place in the queue, with one node and one watch.
// When it is their turn, the goroutine that came first gets the mutex. Each holder that gives it up hands it to the next
// goroutine, in the order in which they came, without a request to a server. After n hand-overs, or when no goroutine
// waits any more, the turn ends. Goroutines that still wait get a new place at the end of the queue. n must be at least 1.
// Default: each goroutine has a place of its own.
//
// A hand-over takes microseconds. In return, the mutex is first come, first served within a process, and turn by turn
// among processes: up to n+1 goroutines of one process in a row can be served before goroutines that have waited longer in
// another process. All other guarantees stay. These are the differences:
//
//   - All holds of one turn have the same node, and so the same [queue.Lease.Path], [queue.Lease.Guard] and
//     [queue.Lease.Token]. A store that compares tokens cannot tell them apart, and must accept one equal to the last.
//   - When the session or the node is lost, the holder's lease is lost. The goroutines that wait go on waiting, with a
//     new node at the end of the queue. Cancelling the wait of one goroutine does not affect the others. An error of the
//     shared contender, such as [queue.ErrConflict], goes to all that wait.
//   - TryLock finds the mutex busy, and asks no server, while another goroutine of this Mutex holds it or waits for it.
//   - [Mutex.Contenders] shows one contender for all goroutines, and can show none between two turns. In traces, the
//     requests for the shared node belong to the call that came first.
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
// looks taken until they ask for it: a node that they create is reported to this process, which gives a place that is not
// in use up at once, and one in use at its Unlock. So they wait one round trip longer than for a free mutex.
//
// The option is for a mutex that one process takes again and again, while others want it now and then. After a place was
// taken away before it was used again, the next places are not kept: first one, and more each time that happens again, up
// to 64. So processes that take turns lose next to nothing. A call that does not return the mutex keeps no place.
//
// d counts from each Unlock. It must be more than 0 and at most a minute. A place is kept for a session timeout at most,
// and the first Unlock a session timeout after the mutex was taken from the servers gives it up. Default: Unlock gives
// the mutex up. These are the differences, and docs/performance.md in the repository has the price:
//
//   - All goroutines that use this Mutex share one place, as with [WithLocalHandover]. As long as no other process has
//     come, Unlock hands the mutex over to the next goroutine without a request. From then on it hands it over as often
//     as WithLocalHandover says, or not at all without that option.
//   - Held is false while the place is only kept. In [Mutex.Contenders], a place that this process keeps has Kept set.
//     Other processes see it as held. Their TryLock waits for it if they have this module, unless another contender waits
//     already or the holder is of its own session.
//   - A process that ends without [session.Manager.Close], or hangs, blocks others until its session expires, also by
//     mutexes that it does not hold.
//   - The session of a kept place sends heartbeats as for one that is held, and [session.WithNodeLimits] counts the place.
//     At most half of the nodes of a session are kept places: beyond that, the place unused for longest is given up.
//   - If a kept place is lost, with the session or because an operator deletes its node, the next Lock queues anew.
func WithLazyRelease(d time.Duration) Option {
	return option(func(o *share.Options) error { return o.SetKeep(d) })
}
