package rwlock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
)

// Option changes an [RWMutex]. [New] returns an error that matches [session.ErrInvalid] for an option that is nil or has
// a bad value.
type Option interface{ apply(*share.Options) error }

type option func(*share.Options) error

func (o option) apply(to *share.Options) error { return o(to) }

// WithName sets a name for the lock in metrics and spans, of readers and of writers, as WithName of package zklock does.
func WithName(text string) Option {
	return option(func(o *share.Options) error { return o.SetName(text) })
}

// WithAsyncRelease makes Unlock and RUnlock return once the release is on its way to the servers, and so the ends of Do and
// TryDo and the Unlock of a Locker. WithAsyncRelease of package zklock says what it costs. Default: they wait for the
// servers' answer, for a second at most.
func WithAsyncRelease() Option { return option((*share.Options).SetAsync) }

// WithLazyRelease makes Unlock and RUnlock keep the place in the queue for up to d, in case this process wants the lock
// again. It is WithLazyRelease of package zklock for both sides of the lock, with the same limits of d and the same price.
// Most of all it is for locks that are nearly always read.
//
// All writers of this RWMutex share one place, and so do all readers. Unlock hands the write lock over to the next writer
// of this RWMutex, without a request, as long as no other contender has come. The readers hold together: an RLock joins
// those that hold, or takes their place again, as long as no writer waits, and without a request. While other readers
// come and go, the readers look with one request each time whether a writer is among them. If there are more than 16
// contenders, or after 16 looks before another reader of this RWMutex comes, they stop to do so: a kept place is given up,
// and from the next change on every reader has a place of its own.
//
// A kept place ends when a contender comes that it blocks, also of this process: a writer, for readers, and anybody, for
// writers. A writer that becomes a reader (a downgrade) keeps no place.
func WithLazyRelease(d time.Duration) Option {
	return option(func(o *share.Options) error { return o.SetKeep(d) })
}
