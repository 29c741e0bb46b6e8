package semaphore

import "github.com/turnstile-go/turnstile/queue"

// Option changes a [Semaphore]. [New] returns an error that matches [session.ErrInvalid] for an option that is nil or has
// a bad value.
type Option interface{ apply(*Semaphore) error }

type option func(*Semaphore) error

func (o option) apply(s *Semaphore) error { return o(s) }

// WithName sets a name for the semaphore in metrics and spans, such as "exports". In Curator's layout, the lock that
// guards the entry has it too. It is otherwise WithName of package zklock. A name is text that can be printed, of 1 to
// 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(s *Semaphore) error {
		s.lock.Request.Name = text
		return queue.CheckName(text)
	})
}

// WithCuratorLayout shares the leases with Apache Curator's InterProcessSemaphoreV2 at the same path. The leases are
// children of <path>/leases. A contender waits for its turn in the queue of <path>/locks before it takes one. An
// acquisition and its release take four writes, where the semaphore's own layout takes two. There are these limitations:
//
//   - Each node is one lease, so [Semaphore.AcquireN] accepts no n but 1.
//   - The limit is not stored, so nothing checks that all processes use the same one. A process with a higher limit takes
//     more leases. [Semaphore.Resize] does not work.
//   - A try also finds the semaphore busy while another contender is taking a lease.
//
// All processes that share the semaphore must use this layout. A process of this module that finds contenders of the
// other layout at the path fails with [queue.ErrConflict]. Curator does not check. Default: the semaphore's own layout.
func WithCuratorLayout() Option {
	return option(func(s *Semaphore) error {
		s.inCuratorLayout = true
		return nil
	})
}

// WithAsyncRelease makes Unlock return once the release is on its way to the servers. Default: Unlock waits for the
// servers' answer, for a second at most. The option holds for the end of Do and TryDo too. WithAsyncRelease of package
// zklock says what it costs, which is the same here.
func WithAsyncRelease() Option {
	return option(func(s *Semaphore) error {
		s.lock.Async = true
		return nil
	})
}
