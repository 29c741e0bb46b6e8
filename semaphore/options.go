package semaphore

import "github.com/turnstile-go/turnstile/internal/share"

// Option changes a [Semaphore]. A nil option and a bad value are errors of [New].
type Option interface{ apply(*options) error }

type option func(*options) error

func (o option) apply(to *options) error { return o(to) }

type options struct {
	share.Options
	curatorLayout bool
}

// WithName sets a name for the semaphore in metrics and spans, as WithName of package zklock does. Default: none.
func WithName(text string) Option {
	return option(func(o *options) error { return o.SetName(text) })
}

// WithCuratorLayout shares the leases with Apache Curator's InterProcessSemaphoreV2 at the same path: they are
// children of <path>/leases, and a contender waits for its turn at <path>/locks before it takes one. An acquisition
// and its release take four writes, where the semaphore's own layout takes two. There are these limitations:
//
//   - Each node is one lease, so [Semaphore.AcquireN] accepts no n but 1.
//   - The limit is not stored, so nothing checks that all processes use the same one. [Semaphore.Resize] does not
//     work.
//   - A try also finds the semaphore busy while another contender is taking a lease.
//
// All processes must use the same layout. One of this module that finds contenders of the other layout fails with
// [queue.ErrConflict]. Default: the semaphore's own layout.
func WithCuratorLayout() Option {
	return option(func(o *options) error {
		o.curatorLayout = true
		return nil
	})
}

// WithAsyncRelease makes Unlock, and the end of Do, return once the release is on its way to the servers, as
// WithAsyncRelease of package zklock does. Default: they wait for the servers' answer.
func WithAsyncRelease() Option {
	return option(func(o *options) error { return o.SetAsync() })
}
