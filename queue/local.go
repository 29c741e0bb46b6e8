package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/session"
)

// Local is a queue of this process in front of a [Queue]. Its waiters share one contender, with
// one node and one watch. When the contender is granted, the first waiter holds. A release
// hands the lock over to the next waiter at once, first come, first served, and no server is
// asked. All of that is one turn. It ends after a number of hand-overs, or when nobody waits any
// more: then the node is deleted, or kept for a while ([WithLazyRelease]). The waiters that remain
// get a new contender, at the end of the queue.
//
// With [WithLazyRelease], hand-overs count only from when a contender of another process has come.
// And if contenders of the Local's kind do not block each other, as those of readers, there are no
// hand-overs: all waiters of a contender hold at once, and others join them, as long as no contender
// has come that the node blocks.
//
// Every hold has a [Lease] of its own. The leases of a turn share its node, and so their path,
// Guard, Token and loss. A loss does not concern the waiters: they get a new contender.
//
// The methods may be called by several goroutines at once. They panic if the Local was not made
// by [Queue.Local].
type Local hold.Local

// hold returns what l is. It panics if l is nil or a zero value.
func (l *Local) hold() *hold.Local { return (*hold.Local)(l).Made() }

// LocalOption changes a [Local]. [Queue.Local] returns an error that matches [session.ErrInvalid] for
// an option that is nil or has a bad value.
type LocalOption interface {
	apply(*hold.LocalConfig) error
}

type localOption func(*hold.LocalConfig) error

func (o localOption) apply(c *hold.LocalConfig) error { return o(c) }

// WithLazyRelease keeps the place in the queue for up to d after each release, at most a minute, in
// case this process wants the lock again. Until then the lock counts as free in this process and as
// taken in others. An acquisition that takes a kept place sends no request. When another contender
// comes, a place that is not in use is given up at once, and one in use at its release.
//
// A place is kept for a session timeout at most, even if d is longer, and is given up at the first
// release after it was held for a session timeout. It is not kept if the acquisition had to wait for
// others (readers look again, up to 16 times before another of them comes, and may keep theirs), after a [RevokeMessage],
// beside a downgrade, and near the end of the sequence numbers. After
// a place was taken away before anybody had used it again, the next ones are not kept: first one, and
// more each time that happens again.
//
// Default: a release gives the place up.
func WithLazyRelease(d time.Duration) LocalOption {
	return localOption(func(c *hold.LocalConfig) error {
		c.Lazy = d
		return hold.CheckLazy(d)
	})
}

// Local returns a queue of this process for one kind of request. A turn has at most the given number of hand-overs,
// which must be at least 1, or at least 0 with [WithLazyRelease]. Local does no I/O. A bad request, number or option,
// or a kind with a limit to keep places for, is an error that matches [session.ErrInvalid].
func (q *Queue) Local(r Request, handovers int, opts ...LocalOption) (*Local, error) {
	made := q.place()
	c := hold.LocalConfig{Handovers: handovers}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("queue: %w: nil option", session.ErrInvalid)
		}
		if err := o.apply(&c); err != nil {
			return nil, fmt.Errorf("queue: %w", err)
		}
	}
	l, err := hold.NewLocal(made, r.place(), c)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return (*Local)(l), nil
}

// Acquire is [Queue.Acquire] by way of the local queue. When ctx ends, the other waiters keep
// their places, and the node stays unless nobody else waits. If the caller came first, and it is not known
// yet whether it has to wait, the others make a new node. If the shared contender fails, for example with
// [ErrConflict], all waiters get that error.
func (l *Local) Acquire(ctx context.Context) (*Lease, error) {
	made := l.hold()
	misuse.Context(ctx, "queue: Local.Acquire")
	lease, err := made.Acquire(ctx)
	return (*Lease)(lease), err
}

// TryAcquire is [Queue.TryAcquire]. It sends no request while somebody in this process holds
// or waits, unless readers hold.
func (l *Local) TryAcquire(ctx context.Context) (*Lease, error) {
	made := l.hold()
	misuse.Context(ctx, "queue: Local.TryAcquire")
	lease, err := made.TryAcquire(ctx)
	return (*Lease)(lease), err
}
