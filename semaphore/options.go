package semaphore

import "github.com/turnstile-go/turnstile/internal/share"

// Option changes a [Semaphore]. [New] returns an error that matches [session.ErrInvalid] for an option that is nil or has
// a bad value.
type Option interface{ apply(*options) error }

type option func(*options) error

func (o option) apply(to *options) error { return o(to) }

type options struct {
	share.Options
	curatorLayout bool
}

// WithName sets a name for the semaphore in metrics and spans, as WithName of package zklock does. In Curator's layout, the
// lock that guards the entry has it too.
func WithName(text string) Option {
	return option(func(o *options) error { return o.SetName(text) })
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
	return option(func(o *options) error {
		o.curatorLayout = true
		return nil
	})
}

// WithAsyncRelease makes Unlock return once the release is on its way to the servers, and so the end of Do and TryDo.
// WithAsyncRelease of package zklock says what it costs. Default: Unlock waits for the servers' answer, for a second at
// most.
func WithAsyncRelease() Option {
	return option(func(o *options) error { return o.SetAsync() })
}
