package semaphore

// Option changes a [Semaphore]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*Semaphore) error }

type option func(*Semaphore) error

func (o option) apply(s *Semaphore) error { return o(s) }

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
