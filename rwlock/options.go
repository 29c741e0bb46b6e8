package rwlock

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes an [RWMutex]. [New] returns an error that matches [session.ErrInvalid] for an option
// that is nil or has a bad value.
type Option interface{ apply(*RWMutex) error }

type option func(*RWMutex) error

func (o option) apply(rw *RWMutex) error { return o(rw) }

// WithRevocable sets a function to call when somebody asks a holder, reader or writer, to give its
// lease up: with Revoke of package zklock, or with Curator's Revoker. f is called at most once for each
// lease, from a goroutine of its own. The request is no order: the holder gives the lock up when it
// suits the work, or keeps it. Default: requests are ignored, and Revoke returns
// zklock.ErrNotRevocable.
func WithRevocable(f func(*queue.Lease)) Option {
	return option(func(rw *RWMutex) error {
		if f == nil {
			return fmt.Errorf("%w: WithRevocable of a nil function", session.ErrInvalid)
		}
		rw.request.Revoked = func(l *place.Lease) { f((*queue.Lease)(l)) }
		return nil
	})
}
