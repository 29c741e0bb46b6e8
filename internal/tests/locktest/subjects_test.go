package locktest_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/locktest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// full is what most locks have.
type full[L locktest.Lease] interface {
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
	Held() bool
	Done() <-chan struct{}
	Do(context.Context, func(context.Context) error) error
	TryDo(context.Context, func(context.Context) error) (bool, error)
	Acquire(context.Context) (L, error)
	TryAcquire(context.Context) (L, error)
}

func lockOf[L locktest.Lease](l full[L]) locktest.Lock {
	return locktest.Lock{
		Lock: l.Lock, TryLock: l.TryLock, Unlock: l.Unlock, Held: l.Held, Done: l.Done, Do: l.Do, TryDo: l.TryDo,
		Acquire: locktest.Leases(l.Acquire), TryAcquire: locktest.Leases(l.TryAcquire),
	}
}

type maker func(*session.Manager, string) (locktest.Lock, error)

// made makes the function New of a subject.
func made[T any](make func(*session.Manager, string) (T, error), of func(T) locktest.Lock) maker {
	return func(m *session.Manager, path string) (locktest.Lock, error) {
		l, err := make(m, path)
		if err != nil {
			return locktest.Lock{}, err
		}
		return of(l), nil
	}
}

// run runs the table for one kind of lock with several sets of options, of which quick tests take the last.
func run(t *testing.T, s locktest.Subject, variants ...variant) {
	if !longtest.On() {
		variants = variants[len(variants)-1:]
	}
	for i, v := range variants {
		s := s
		s.Turn += i
		s.Shared = i == len(variants)-1
		s.Name, s.New = v.name, v.make
		s.SharesPlace, s.KeepsPlace, s.Async = v.shares || v.keeps, v.keeps, v.async
		locktest.Run(t, s)
	}
}

type variant struct {
	name                 string
	make                 maker
	shares, keeps, async bool
}

// ofZklock returns the variants of a lock with the options of package zklock.
func ofZklock(make func(...zklock.Option) maker) []variant {
	over, kept, async := zklock.WithLocalHandover(3), zklock.WithLazyRelease(locktest.KeptFor), zklock.WithAsyncRelease()
	return []variant{
		{name: "plain", make: make()},
		{name: "handed over", make: make(over), shares: true},
		{name: "async", make: make(async), async: true},
		{name: "kept, async", make: make(kept, async), keeps: true, async: true},
		{name: "handed over and kept", make: make(over, kept), keeps: true},
	}
}

func TestMutex(t *testing.T) {
	s := locktest.Subject{Holders: 1, Reentrant: true, Slot: true}
	run(t, s, ofZklock(func(opts ...zklock.Option) maker {
		return made(func(m *session.Manager, path string) (*zklock.Mutex, error) {
			return zklock.New(m, path, opts...)
		}, func(mx *zklock.Mutex) locktest.Lock { return lockOf(mx) })
	})...)
}

func TestMulti(t *testing.T) {
	longtest.InCI(t)
	s := locktest.Subject{Holders: 1, Nodes: 2, Reentrant: true, Slot: true}
	run(t, s, ofZklock(func(opts ...zklock.Option) maker {
		return made(func(m *session.Manager, path string) (*zklock.MultiLock, error) {
			first, err := zklock.New(m, path, opts...)
			if err != nil {
				return nil, err
			}
			second, err := zklock.New(m, path+"-second", opts...)
			if err != nil {
				return nil, err
			}
			return zklock.Multi(second, first)
		}, func(mx *zklock.MultiLock) locktest.Lock { return lockOf(mx) })
	})...)
}

func TestKeyed(t *testing.T) {
	longtest.Only(t) // it is a Mutex for each key
	s := locktest.Subject{Holders: 1, Reentrant: true, Slot: true}
	run(t, s, ofZklock(func(opts ...zklock.Option) maker {
		return made(func(m *session.Manager, path string) (*zklock.Keyed, error) {
			return zklock.NewKeyed(m, path, opts...)
		}, func(k *zklock.Keyed) locktest.Lock {
			return lockOf(oneKey{k})
		})
	})...)
}

// oneKey is the lock of one key.
type oneKey struct{ *zklock.Keyed }

const key = "invoice/47"

func (k oneKey) Lock(ctx context.Context) error            { return k.Keyed.Lock(ctx, key) }
func (k oneKey) TryLock(ctx context.Context) (bool, error) { return k.Keyed.TryLock(ctx, key) }
func (k oneKey) Unlock() error                             { return k.Keyed.Unlock(key) }
func (k oneKey) Held() bool                                { return k.Keyed.Held(key) }
func (k oneKey) Done() <-chan struct{}                     { return k.Keyed.Done(key) }
func (k oneKey) Do(ctx context.Context, f func(context.Context) error) error {
	return k.Keyed.Do(ctx, key, f)
}
func (k oneKey) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	return k.Keyed.TryDo(ctx, key, f)
}
func (k oneKey) Acquire(ctx context.Context) (*queue.Lease, error) { return k.Keyed.Acquire(ctx, key) }
func (k oneKey) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return k.Keyed.TryAcquire(ctx, key)
}

// rwlocks returns the variants of one side of a read-write lock.
func rwlocks(side func(*rwlock.RWMutex) locktest.Lock) []variant {
	make := func(opts ...rwlock.Option) maker {
		return made(func(m *session.Manager, path string) (*rwlock.RWMutex, error) { return rwlock.New(m, path, opts...) }, side)
	}
	return []variant{
		{name: "plain", make: make()},
		{name: "async", make: make(rwlock.WithAsyncRelease()), async: true},
		{name: "kept", make: make(rwlock.WithLazyRelease(locktest.KeptFor)), keeps: true},
	}
}

func writer(rw *rwlock.RWMutex) locktest.Lock { return lockOf(rw) }
func reader(rw *rwlock.RWMutex) locktest.Lock { return lockOf(rw.Reader()) }

func TestWriter(t *testing.T) {
	run(t, locktest.Subject{Holders: 1, Reentrant: true, Slot: true}, rwlocks(writer)...)
}

func TestReader(t *testing.T) {
	run(t, locktest.Subject{Rival: rwlocks(writer)[0].make, Reentrant: true}, rwlocks(reader)...)
}

func TestSemaphore(t *testing.T) {
	of := func(s *semaphore.Semaphore) locktest.Lock { return lockOf(s) }
	make := func(n int, of func(*semaphore.Semaphore) locktest.Lock, opts ...semaphore.Option) maker {
		return made(func(m *session.Manager, path string) (*semaphore.Semaphore, error) {
			return semaphore.New(m, path, n, opts...)
		}, of)
	}
	run(t, locktest.Subject{Holders: 1}, variant{name: "of one", make: make(1, of)})
	all := func(s *semaphore.Semaphore) locktest.Lock {
		return locktest.Lock{Acquire: locktest.Leases(func(ctx context.Context) (*queue.Lease, error) { return s.AcquireN(ctx, 3) })}
	}
	run(t, locktest.Subject{Rival: make(3, all), Holders: 3, Turn: 1},
		variant{name: "of three, async", make: make(3, of, semaphore.WithAsyncRelease()), async: true}, variant{name: "of three", make: make(3, of)})
	run(t, locktest.Subject{Holders: 1, Gate: true, Turn: 2},
		variant{name: "of one, in Curator's layout", make: make(1, of, semaphore.WithCuratorLayout())})
}

// A candidate runs for one term in each Do.
func TestElection(t *testing.T) {
	over := errors.New("the term is over")
	end := election.WithTermEnd(func(err error) error {
		if err == nil {
			return over
		}
		return err
	})
	campaign := func(m *session.Manager, path string) (locktest.Lock, error) {
		if _, err := election.New(m, path, end); err != nil {
			return locktest.Lock{}, err
		}
		return locktest.Lock{Do: func(ctx context.Context, lead func(context.Context) error) error {
			e, err := election.New(m, path, end) // an election has one Run at a time
			if err != nil {
				return err
			}
			switch err := e.Run(ctx, lead); {
			case errors.Is(err, over):
				return nil
			case err == nil: // a shutdown, before lead was called or while it returned no error
				return cmp.Or(ctx.Err(), session.ErrClosed)
			default:
				return err
			}
		}}, nil
	}
	run(t, locktest.Subject{
		Holders: 1, Campaigns: true, Asked: election.ErrResigned,
	}, variant{name: "candidate", make: campaign})
}

// A Queue alone has leases.
func TestQueue(t *testing.T) {
	of := func(q *queue.Queue, kind *queue.Kind, n int) locktest.Lock {
		r := queue.Request{Kind: kind, Weight: n}
		return locktest.Lock{
			Acquire:    locktest.Leases(func(ctx context.Context) (*queue.Lease, error) { return q.Acquire(ctx, r) }),
			TryAcquire: locktest.Leases(func(ctx context.Context) (*queue.Lease, error) { return q.TryAcquire(ctx, r) }),
		}
	}
	make := func(kind *queue.Kind, n int) maker {
		return made(queue.New, func(q *queue.Queue) locktest.Lock { return of(q, kind, n) })
	}
	run(t, locktest.Subject{Holders: 1}, variant{name: "mutex", make: make(queue.Mutex(), 1)})
	run(t, locktest.Subject{Rival: make(queue.Writer(), 1)}, variant{name: "reader", make: make(queue.Reader(), 1)})
	three := queue.Semaphore(3)
	run(t, locktest.Subject{Rival: make(three, 3), Holders: 3}, variant{name: "semaphore", make: make(three, 1)})
}
