package zklock

import "github.com/turnstile-go/turnstile/internal/misuse"

// WithLocalHandover lets all goroutines that use this Mutex share one place in the queue, with one
// node and one watch. When it is their turn, the goroutine that came first gets the mutex. Each
// holder that gives it up hands it to the next goroutine, in the order in which they came, without
// a request to a server. After n hand-overs, or when no goroutine waits any more, the turn ends and
// the next contender's begins. Goroutines that still wait get a new place at the end of the queue.
// n must be at least 1.
//
// A hand-over within a process then takes microseconds, and the servers have one node instead of
// one for each goroutine. In return, some of the order is lost. The mutex is first come, first
// served within a process, and turn by turn among processes. So up to n+1 goroutines of one process
// in a row can be served before goroutines that have waited longer in another process.
//
// All other guarantees stay. These are the differences:
//
//   - All holds of one turn have the same node, and so the same [queue.Lease.Path],
//     [queue.Lease.Guard] and [queue.Lease.Token]. The token never decreases from one holder to
//     the next, and grows from one turn to the next. So a store that compares tokens refuses
//     holders of an earlier turn, of this process or another. It cannot tell apart two holders of
//     one turn, which are goroutines of one process. A store must accept a token equal to the last
//     one; if it demands tokens that grow, do not use this option.
//   - When the session or the node is lost, the holder's lease is lost. The goroutines that wait go
//     on waiting, with a new node at the end of the queue. Cancelling the wait of one goroutine
//     affects neither the node nor the others. The node goes when the last of them is cancelled,
//     or the first one before it is known whether it has to wait: then the others make a new one.
//   - TryLock finds the mutex busy, and asks no server, while another goroutine of this Mutex holds
//     it or waits for it.
//   - [Mutex.Contenders] shows one contender for all goroutines. Between two turns it can show none: the
//     delete of the last turn's node leaves right ahead of the create of the next one.
//   - In traces, the requests for the shared node belong to the call that came first. The node's
//     data names the process and has no traceparent.
//   - A request to give the lock up ([Revoke]) goes to the holder that is there, and ends the turn: no more
//     hand-overs take place in it.
//   - If the shared contender fails, for example with [queue.ErrConflict], every waiting goroutine
//     gets that error.
//
// Two Mutex values at one path are two contenders, also in one process. Default: each goroutine has
// a place of its own, and the order is first come, first served among all of them.
func WithLocalHandover(n int) Option {
	return option(func(c *config) error {
		if n < 1 {
			return misuse.Invalidf("WithLocalHandover(%d): want at least 1", n)
		}
		c.handovers = n
		return nil
	})
}
