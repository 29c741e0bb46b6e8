//go:build linux

package nemesis

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// The bounded locks have bounds on their queues (WithMaxWaiters),
// which are drawn for each process.

const (
	boundedName    = "bounded-mutex"
	boundedRWName  = "bounded-rwlock"
	boundedSemName = "bounded-semaphore"

	boundedHands = 2 // of each worker
	boundedLimit = 2 // of the semaphore
)

// bounds are the options of the bounded locks in one process.
type bounds struct {
	waiters int  // WithMaxWaiters
	local   bool // the mutex has local hand-over
}

func drawBounds(r *rand.Rand) bounds {
	return bounds{
		waiters: r.IntN(workers * boundedHands),
		local:   r.IntN(2) == 0,
	}
}

// certain is how many contenders were ahead for certain when a call was refused. A mutex with local
// hand-over goes by what it last heard of the one or two nodes that its process watches.
func (b bounds) certain(name string) int {
	if name == boundedName && b.local {
		return b.waiters + 1 - 2
	}
	return b.waiters + 1
}

// boundedLock is one lock of this module in which calls of all kinds take what they are told.
type boundedLock struct {
	acquire, try acquires
	claim        claim
}

// openBounded makes two locks at one path: of the other one, the queue can be of any length.
func (o *ours) openBounded(p place) (func(*rand.Rand) contender, error) {
	var strict, mild []boundedLock
	var err, errMild error
	switch p.name() {
	case boundedName:
		strict, err = o.boundedMutex(p.path, true)
		mild, errMild = o.boundedMutex(p.path, false)
	case boundedRWName:
		strict, err = o.boundedRW(p.path, true)
		mild, errMild = o.boundedRW(p.path, false)
	default:
		strict, err = o.boundedSemaphore(p.path, true)
		mild, errMild = o.boundedSemaphore(p.path, false)
	}
	return func(r *rand.Rand) contender {
		return &ourBounded{
			strict: strict, mild: mild, certain: o.bounds.certain(p.name()),
			live: func() *session.Session { return o.m.Status().Session }, random: r,
		}
	}, errors.Join(err, errMild)
}

func (o *ours) boundedMutex(path string, strict bool) ([]boundedLock, error) {
	var opts []zklock.Option
	if o.bounds.local {
		opts = append(opts, zklock.WithLocalHandover(handOvers))
	}
	if strict {
		opts = append(opts, zklock.WithMaxWaiters(o.bounds.waiters))
	}
	m, err := zklock.New(o.m, path, opts...)
	if err != nil {
		return nil, err
	}
	return []boundedLock{{m.Acquire, m.TryAcquire, claim{}}}, nil
}

func (o *ours) boundedRW(path string, strict bool) ([]boundedLock, error) {
	var opts []rwlock.Option
	if strict {
		opts = append(opts, rwlock.WithMaxWaiters(o.bounds.waiters))
	}
	rw, err := rwlock.New(o.m, path, opts...)
	if err != nil {
		return nil, err
	}
	return []boundedLock{{rw.Acquire, rw.TryAcquire, claim{}}, {rw.Reader().Acquire, rw.Reader().TryAcquire, claim{Reads: true}}}, nil
}

func (o *ours) boundedSemaphore(path string, strict bool) (all []boundedLock, err error) {
	var opts []semaphore.Option
	if strict {
		opts = append(opts, semaphore.WithMaxWaiters(o.bounds.waiters))
	}
	s, err := semaphore.New(o.m, path, boundedLimit, opts...)
	if err != nil {
		return nil, err
	}
	for n := 1; n <= boundedLimit; n++ {
		all = append(all, boundedLock{
			func(ctx context.Context) (*queue.Lease, error) { return s.AcquireN(ctx, n) },
			func(ctx context.Context) (*queue.Lease, error) { return s.TryAcquireN(ctx, n) },
			claim{Weight: n},
		})
	}
	return all, nil
}

// ourBounded waits in a queue of any length after it has been refused, so that it is served.
type ourBounded struct {
	strict, mild []boundedLock
	certain      int
	live         func() *session.Session
	random       *rand.Rand
	refused      bool
}

func (b *ourBounded) acquire(ctx context.Context) (hold, error) {
	all := b.strict
	if b.refused {
		all = b.mild
	}
	h, err := b.take(ctx, all[b.random.IntN(len(all))], b.random.IntN(3) == 0)
	b.refused = errors.Is(err, queue.ErrBusy)
	return h, err
}

// sole takes the lock by each of its bounded ways when nobody else has it or wants it.
func (b *ourBounded) sole() (ways []func(context.Context) (hold, error)) {
	for _, lock := range b.strict {
		for _, try := range []bool{true, false} {
			ways = append(ways, func(ctx context.Context) (hold, error) { return b.take(ctx, lock, try) })
		}
	}
	return ways
}

func (b *ourBounded) take(ctx context.Context, lock boundedLock, try bool) (hold, error) {
	get, certain := lock.acquire, b.certain
	if try {
		get, certain = lock.try, 1
	}
	session, has := b.live(), lock.claim
	lease, err := get(ctx)
	if has.Moved = session == nil || b.live() != session; has.Moved {
		certain = 0 // what was ahead may have been its own
	}
	if errors.Is(err, queue.ErrBusy) {
		return nil, &refusal{err, refused{Try: try, Ahead: certain, Gone: ctx.Err() == nil && !has.Moved}, has}
	}
	if err != nil {
		return nil, err
	}
	h := &boundedHold{ourHold: ourHold{lease, has}}
	h.works, h.done = lease.Context(context.Background())
	return h, nil
}

// refusal is the error of a call that did not wait for others.
type refusal struct {
	error
	how   refused
	claim claim // what it wanted
}

func (r *refusal) Unwrap() error { return r.error }

// boundedHold is a hold whose work is done under a context.
type boundedHold struct {
	ourHold
	works context.Context
	done  context.CancelFunc
}

// held is true also if only the context of the work says so.
func (h *boundedHold) held() bool { return h.works.Err() == nil || h.ourHold.held() }

func (h *boundedHold) release(ctx context.Context) error {
	defer h.done()
	return h.ourHold.release(ctx)
}
