package rwlock

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/share"
)

// Option changes an [RWMutex]. A nil option and a bad value are errors of [New].
type Option interface{ apply(*share.Options) error }

type option func(*share.Options) error

func (o option) apply(to *share.Options) error { return o(to) }

// WithName sets a name for the lock in metrics and spans, as WithName of package zklock does. Default: none.
func WithName(text string) Option {
	return option(func(o *share.Options) error { return o.SetName(text) })
}

// WithAsyncRelease makes Unlock, RUnlock and the end of Do return once the release is on its way, as WithAsyncRelease
// of package zklock does. Default: they wait for the servers' answer.
func WithAsyncRelease() Option { return option((*share.Options).SetAsync) }

// WithLazyRelease makes Unlock and RUnlock keep the place in the queue for up to d, as WithLazyRelease of package
// zklock does, with the same limits and the same price. Most of all it is for locks that are nearly always read.
// Default: they give the place up.
//
// All writers of this RWMutex share one place, and so do all readers. Readers hold together: an RLock joins those that
// hold, or takes their place again, without a request, as long as no writer waits. When other readers come and go, a
// request looks whether a writer is among them: up to 16 times, and among 16 contenders at most.
//
// A kept place ends when a contender comes that it blocks, also of this process.
func WithLazyRelease(d time.Duration) Option {
	return option(func(o *share.Options) error { return o.SetKeep(d) })
}
