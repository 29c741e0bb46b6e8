package semaphore

import (
	"fmt"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Option changes a [Semaphore]. Bad values make [New] fail, with an error that matches
// [session.ErrInvalid].
type Option interface{ apply(*Semaphore) error }

type option func(*Semaphore) error

func (o option) apply(s *Semaphore) error { return o(s) }

// WithData sets the data of this semaphore's nodes, which [Semaphore.Contenders] shows to
// others; at most 64 KiB. Default: {"id":"host/pid"}, with a traceparent if the manager
// has hooks that give one.
func WithData(data []byte) Option {
	return option(func(s *Semaphore) error {
		kept, err := hold.NodeData(data)
		s.data = kept
		return err
	})
}

// WithRevocable sets what to call when somebody asks the holder of a lease to give it up,
// by writing [queue.RevokeMessage] into its node: once per lease, from a goroutine of its
// own. It is for the holder to release the lease, or not. Default: nobody is told.
func WithRevocable(f func(*queue.Lease)) Option {
	return option(func(s *Semaphore) error {
		if f == nil {
			return fmt.Errorf("%w: WithRevocable without a function", session.ErrInvalid)
		}
		s.revoked = f
		return nil
	})
}

// WithCuratorLayout makes the semaphore one with Apache Curator's InterProcessSemaphoreV2
// at the same path: both count the same leases. Its leases are children of <path>/leases,
// and whoever wants one is first in the queue of <path>/locks meanwhile. That takes four
// writes for an acquisition and its release, where the semaphore's own layout takes two,
// and offers less:
//
//   - A lease is one, so [Semaphore.AcquireN] takes no n but 1.
//   - The limit is nowhere kept, so nothing checks that all give the same, and
//     [Semaphore.Resize] does not work. A process that gives a higher one takes more.
//   - A try is busy also while another contender is just coming in.
//
// All processes that share the semaphore must use it. One of this module that finds contenders
// of the other layout at the path fails with [queue.ErrConflict]; Curator does not look.
func WithCuratorLayout() Option {
	return option(func(s *Semaphore) error {
		s.curator = true
		return nil
	})
}
