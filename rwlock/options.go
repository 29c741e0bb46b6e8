package rwlock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
)

// Option changes an [RWMutex]. [New] returns an error that matches [session.ErrInvalid] for an option that is nil or has
// a bad value.
type Option interface{ apply(*share.Options) error }

type option func(*share.Options) error

func (o option) apply(to *share.Options) error { return o(to) }

// WithName sets a name for the lock in metrics and spans, such as "prices", of readers and of writers. It is otherwise
// WithName of package zklock. A name is text that can be printed, of 1 to 200 bytes. Default: none.
func WithName(text string) Option {
	return option(func(o *share.Options) error {
		o.Name = text
		return queue.CheckName(text)
	})
}

// WithAsyncRelease makes Unlock and RUnlock return once the release is on its way to the servers. Default: they wait for
// the servers' answer, for a second at most. The option holds for the ends of Do and TryDo, also of a [Reader], and for
// the Unlock of a Locker too. WithAsyncRelease of package zklock says what it costs, which is the same here.
func WithAsyncRelease() Option {
	return option(func(o *share.Options) error {
		o.Async = true
		return nil
	})
}

// WithLazyRelease makes Unlock and RUnlock keep the place in the queue for up to d, in case this process wants the lock
// again. A Lock or RLock in that time takes microseconds and sends no request. It is zklock.WithLazyRelease for both
// sides of the lock, with the same limits of d and the same price. Most of all it is for locks that are nearly always
// read.
//
// All writers of this RWMutex share one place, and so do all readers. Unlock hands the write lock over to the next writer
// of this RWMutex, without a request, as long as no other contender has come. The readers hold together: an RLock joins
// those that hold, or takes their place again, as long as no writer waits, and without a request. While other readers
// come and go, the readers look with one request each time whether a writer is among them. If there are more than 16
// contenders, or after 16 looks before another reader of this RWMutex comes, they stop to do so: a place that is only
// kept is given up, and from the next change on every reader has a place of its own.
//
// A place that is kept ends when a contender comes that it blocks: a writer, for readers, and anybody, for writers. That
// holds for contenders of this process too: a Lock gives up the place that its readers keep, before it sends a request.
// TryLock and TryRLock wait for places that other processes may only keep.
//
// A writer that becomes a reader (a downgrade) keeps no place. d must be more than 0 and at most a minute. Default:
// Unlock and RUnlock give the place up.
func WithLazyRelease(d time.Duration) Option {
	return option(func(o *share.Options) error {
		o.Keep = d
		return share.CheckKeep(d)
	})
}
