package rwlock

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes an [RWMutex]. Bad values make [New] fail, with an error that matches
// [session.ErrInvalid].
type Option interface{ apply(*RWMutex) error }

type option func(*RWMutex) error

func (o option) apply(rw *RWMutex) error { return o(rw) }

// WithData sets the data of this lock's nodes, which [RWMutex.Contenders] shows to
// others; at most 64 KiB. Default: {"id":"host/pid"}, with a traceparent if the manager
// has hooks that give one.
func WithData(data []byte) Option {
	return option(func(rw *RWMutex) error {
		kept, err := hold.NodeData(data)
		rw.data = kept
		return err
	})
}

// WithRevocable sets what to call when somebody asks a holder, reader or writer, to give
// its lease up: once at most for each lease, from a goroutine of its own. The lock stays
// held until the holder gives it up, as it would have without. Default: nobody is told.
func WithRevocable(f func(*queue.Lease)) Option {
	return option(func(rw *RWMutex) error {
		if f == nil {
			return fmt.Errorf("%w: nil function to call on revocation", session.ErrInvalid)
		}
		rw.revoked = f
		return nil
	})
}
