package hold

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// LockerOption changes what Locker returns.
type LockerOption interface{ apply(*lockerConfig) }

type lockerConfig struct {
	onLost   func(error)
	onClosed func(error) // nil: a line in the log
}

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

// OnClosed sets what to call when Lock finds the manager closed, before it ends its goroutine.
func OnClosed(f func(error)) LockerOption {
	return lockerOption(func(c *lockerConfig) { c.onClosed = f })
}

// Locker returns holds as a [sync.Locker]. Its Lock tries again whatever fails, and ends its
// goroutine when the manager is closed; its Unlock panics when nothing is held.
func (h *Holds[L]) Locker(get Get[L], opts ...LockerOption) sync.Locker {
	l := &locker[L]{holds: h, get: get, lockerConfig: lockerConfig{onLost: func(error) {}}}
	for _, o := range opts {
		if o != nil {
			o.apply(&l.lockerConfig)
		}
	}
	return l
}

type locker[L Lease] struct {
	lockerConfig
	holds *Holds[L]
	get   Get[L]

	left    atomic.Bool // a Lock has ended its goroutine
	trouble complaints
}

func (l *locker[L]) Lock() {
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = 5 * time.Second
	for {
		h, err := l.holds.Lock(context.Background(), l.get)
		switch {
		case err == nil:
			l.trouble.over()
			l.watch(h.Lease)
			return
		case errors.Is(err, session.ErrClosed):
			l.leave(err)
		}
		// The server refuses: whoever repairs that should not have to restart us.
		if l.trouble.isNews(err) {
			l.holds.log().Warn("turnstile: Lock fails, and goes on trying", "lock", l.holds.path, "err", err)
		}
		if !l.holds.pause(wait.NextBackOff()) {
			l.leave(fmt.Errorf("lock %s: %w", l.holds.path, session.ErrClosed))
		}
	}
}

// leave ends the calling goroutine, which cannot have the lock any more.
func (l *locker[L]) leave(err error) {
	l.left.Store(true)
	if l.onClosed != nil {
		l.onClosed(err)
	} else {
		l.holds.log().Warn("turnstile: Lock ends its goroutine", "lock", l.holds.path, "err", err)
	}
	runtime.Goexit()
}

// watch calls onLost when the lease ends otherwise than by its release, or by the closing of
// the manager, which the program itself has done.
func (l *locker[L]) watch(lease L) {
	ctx, cancel := lease.Context(context.Background())
	context.AfterFunc(ctx, func() {
		defer cancel()
		if err := lease.Err(); !errors.Is(err, queue.ErrReleased) && !errors.Is(err, session.ErrClosed) {
			l.onLost(err)
		}
	})
}

func (l *locker[L]) Unlock() {
	// A goroutine that ends in Lock runs its deferred Unlock, though it holds nothing: one that
	// was in the Wait of a sync.Cond, for example.
	if err := l.holds.Unlock(); errors.Is(err, ErrNotHeld) && !l.left.Load() {
		panic(fmt.Sprintf("turnstile: %v", err))
	}
}
