package semaphore

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes a [Semaphore]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*Semaphore) error }

type option func(*Semaphore) error

func (o option) apply(s *Semaphore) error { return o(s) }

// WithRevocable sets a function to call when somebody asks the holder of a lease to give it up: with
// Revoke of package zklock, or by writing [queue.RevokeMessage] into its node. f is called at most once
// for each lease, from a goroutine of its own. The request is no order: the holder gives the lease up
// when it suits the work, or keeps it. Default: requests are ignored, and Revoke returns
// zklock.ErrNotRevocable.
func WithRevocable(f func(*queue.Lease)) Option {
	return option(func(s *Semaphore) error {
		if f == nil {
			return fmt.Errorf("%w: WithRevocable of a nil function", session.ErrInvalid)
		}
		s.lease.Request.Revoked = func(l *place.Lease) { f((*queue.Lease)(l)) }
		return nil
	})
}

// WithCuratorLayout shares the leases with Apache Curator's InterProcessSemaphoreV2 at the same path.
// The leases are children of <path>/leases. A contender waits for its turn in the queue of <path>/locks
// before it takes one. An acquisition and its release take four writes, where the semaphore's own
// layout takes two. There are these limitations:
//
//   - Each node is one lease, so [Semaphore.AcquireN] accepts no n but 1.
//   - The limit is not stored, so nothing checks that all processes use the same one. A process with a
//     higher limit takes more leases. [Semaphore.Resize] does not work.
//   - A try also finds the semaphore busy while another contender is taking a lease.
//
// All processes that share the semaphore must use this layout. A process of this module that finds
// contenders of the other layout at the path fails with [queue.ErrConflict]. Curator does not check.
// Default: the semaphore's own layout.
func WithCuratorLayout() Option {
	return option(func(s *Semaphore) error {
		s.curator = true
		return nil
	})
}
