package hold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// LockerOption changes what Locker returns.
type LockerOption interface{ apply(*lockerConfig) }

type lockerConfig struct{ onLost func(error) }

type lockerOption func(*lockerConfig)

func (o lockerOption) apply(c *lockerConfig) { o(c) }

// OnLost sets what to call when the lock is lost between Lock and Unlock.
func OnLost(f func(error)) LockerOption {
	return lockerOption(func(c *lockerConfig) {
		if f != nil {
			c.onLost = f
		}
	})
}

// Locker returns holds as a [sync.Locker]. Its Lock tries again whatever fails, and panics
// when the manager is closed; its Unlock panics when nothing is held.
func (h *Holds[L]) Locker(get Get[L], opts ...LockerOption) sync.Locker {
	c := lockerConfig{onLost: func(error) {}}
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	return &locker[L]{holds: h, get: get, onLost: c.onLost}
}

type locker[L Lease] struct {
	holds  *Holds[L]
	get    Get[L]
	onLost func(error)
}

func (l *locker[L]) Lock() {
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = 5 * time.Second
	for {
		h, err := l.holds.Lock(context.Background(), l.get)
		switch {
		case err == nil:
			l.watch(h.Lease)
			return
		case errors.Is(err, session.ErrClosed):
			panic(fmt.Sprintf("turnstile: Lock of %s: %v", l.holds.path, err))
		}
		// The server refuses: whoever repairs that should not have to restart us.
		time.Sleep(wait.NextBackOff())
	}
}

// watch calls onLost when the lease ends otherwise than by its release.
func (l *locker[L]) watch(lease L) {
	ctx, cancel := lease.Context(context.Background())
	context.AfterFunc(ctx, func() {
		defer cancel()
		if err := lease.Err(); !errors.Is(err, queue.ErrReleased) {
			l.onLost(err)
		}
	})
}

func (l *locker[L]) Unlock() {
	if err := l.holds.Unlock(); errors.Is(err, ErrNotHeld) {
		panic(fmt.Sprintf("turnstile: %v", err))
	}
}
