package zklock

import "github.com/turnstile-go/turnstile/queue"

// unfair is the kind of a mutex without a queue.
var unfair = &queue.Kind{
	Name:     "unfair",
	Prefixes: []string{queue.PrefixUnfair},
	Unfair:   true,
}

// WithUnfair makes the mutex the simple exclusive lock of the textbooks: one ephemeral node,
// which whoever makes it holds. All others wait for its end, and then all try again. It is
// there for comparison, and for those who want barging: who comes at the right moment gets in
// before others who have waited for long, and somebody can wait for ever.
//
// Taking a free one costs one round trip, as with the fair mutex. But a release wakes all who
// wait, one in each process, and one of them gets in, a round trip later. With 20 processes
// waiting, a release of the unfair mutex woke 20, who sent 60 requests before 19 of them
// waited again; a release of the fair one woke 1, who sent none: the next, which holds the mutex
// by that and asks nobody. Of those who come later it wakes one more, who looks once
// (TestWakeUps counts them).
//
// All other guarantees are those of the fair mutex. What differs besides:
//
//   - Fair and unfair ones at one path do not share a lock: who finds the other kind there
//     fails with [queue.ErrConflict], and never gets in beside it.
//   - [Mutex.Contenders] shows the holder alone. TryLock also finds somebody in the way when
//     another goroutine of the process is about to take the mutex.
//   - All holders have a node of the same path in turn, so [queue.Lease.Guard] lets no write
//     through. [queue.Lease.Token] is the way to fence.
//   - A request to give it up ([Revoke]) that comes late reaches the next holder.
//   - An operator who deletes the holder's node in the moment of its release can have the
//     next holder's deleted with it, who is told.
//
// No other library has such nodes: with [WithPrefixes] it is an error. Default: fair.
func WithUnfair() Option {
	return option(func(m *Mutex) error {
		m.unfair = true
		return nil
	})
}
