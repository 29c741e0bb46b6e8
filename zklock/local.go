package zklock

import (
	"fmt"

	"github.com/turnstile-go/turnstile/session"
)

// WithLocalHandover lets the goroutines of this process that share the Mutex stand in the
// queue as one: with one node and one watch, however many they are. When it is their turn the
// first of them gets the mutex, and whoever gives it up hands it on to the next of them, in
// the order in which they came, without asking a server; n times at most. Then, or when none
// of them waits any more, it is the turn of others, and those who still wait here stand at the
// end of the queue again. n is at least 1; together with [WithUnfair] it is an error, as there
// are no turns.
//
// It makes a hand-over within a process a matter of microseconds, and spares the servers a
// node for each goroutine. What it costs is some of the order: it is first come, first served
// within a process, and turn by turn among processes, but somebody who came later can be
// served before others who wait in another process: up to n+1 in a row.
//
// All guarantees are those of the mutex without it. What differs besides:
//
//   - All holds of one turn have the same node, hence the same [queue.Lease.Path],
//     [queue.Lease.Guard] and [queue.Lease.Token]. The token never decreases from one holder
//     to the next, and grows from one turn to the next, so whatever compares tokens refuses a
//     holder of an earlier turn, in this process or another. It cannot tell apart two holders
//     of one turn, which are goroutines of one process: that process knows which of them has
//     given the mutex up, as no other can. A store that demands tokens that grow must accept
//     an equal one, or the option is not for it: a number of the server's for each hold would
//     cost the round trip that is saved here.
//   - When the session or the node is lost, the one who holds is told, and those who wait go
//     on to wait with a new node, at the end of the queue. That one of them is cancelled
//     touches neither the node nor the others; with the last of them the node goes.
//   - TryLock finds somebody in the way, and asks no server, while another goroutine holds
//     the mutex or waits for it.
//   - [Mutex.Contenders] shows one contender for all; two in the moment between two turns, as
//     the next has its place before the node of the last goes. [session.WithMaxNodes] counts
//     both; where there is room for one alone, the node of the last goes first, and the next
//     has its place behind whoever has come by then. The requests for it belong to the trace of
//     the call that came first. Its data has the process and no traceparent.
//   - Whoever is asked to make room ([WithRevocable]) is the last of the turn.
//   - What keeps the one contender out, such as [queue.ErrConflict], is returned to all.
//
// Two Mutex values at one path are two contenders, in one process too. Default: each
// goroutine stands in the queue by itself, and the order is that of all of them.
func WithLocalHandover(n int) Option {
	return option(func(m *Mutex) error {
		if n < 1 {
			return fmt.Errorf("%w: WithLocalHandover of %d", session.ErrInvalid, n)
		}
		m.passes = n
		return nil
	})
}
