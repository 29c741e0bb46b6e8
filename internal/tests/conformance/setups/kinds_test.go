package setups

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// lock is a lock of any kind that one client at a time can have.
type lock struct {
	acquire    func(context.Context) (release func(context.Context) error, err error)
	contenders func(context.Context) ([]queue.Contender, error)
}

// grant is the outcome of a lock's acquire.
type grant struct {
	release func(context.Context) error
	err     error
}

// releases makes an acquire of a lock from that of a package.
func releases(
	acquire func(context.Context) (*queue.Lease, error),
) func(context.Context) (func(context.Context) error, error) {
	return func(ctx context.Context) (func(context.Context) error, error) {
		lease, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
}

var kinds = map[string]func(*session.Manager, string) (lock, error){
	"mutex": func(m *session.Manager, path string) (lock, error) {
		mx, err := zklock.New(m, path)
		if err != nil {
			return lock{}, err
		}
		return lock{releases(mx.Acquire), mx.Contenders}, nil
	},
	"read-write lock": func(m *session.Manager, path string) (lock, error) {
		rw, err := rwlock.New(m, path)
		if err != nil {
			return lock{}, err
		}
		return lock{releases(rw.Acquire), rw.Contenders}, nil
	},
	"semaphore": func(m *session.Manager, path string) (lock, error) {
		s, err := semaphore.New(m, path, 1)
		if err != nil {
			return lock{}, err
		}
		return lock{releases(s.Acquire), s.Contenders}, nil
	},
	"semaphore in Curator's layout": func(m *session.Manager, path string) (lock, error) {
		s, err := semaphore.New(m, path, 1, semaphore.WithCuratorLayout())
		if err != nil {
			return lock{}, err
		}
		return lock{releases(s.Acquire), s.Contenders}, nil
	},
	"two mutexes": twoMutexes,
	"election":    campaign,
}

// twoMutexes takes two locks, both or none.
func twoMutexes(m *session.Manager, path string) (lock, error) {
	first, err := zklock.New(m, path+"-first")
	if err != nil {
		return lock{}, err
	}
	second, err := zklock.New(m, path+"-second")
	if err != nil {
		return lock{}, err
	}
	both, err := zklock.Multi(first, second)
	if err != nil {
		return lock{}, err
	}
	acquire := func(ctx context.Context) (func(context.Context) error, error) {
		lease, err := both.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
	return lock{acquire, first.Contenders}, nil
}

// errResigned ends a candidate's Run.
var errResigned = errors.New("resigned")

// campaign leads until it is released.
func campaign(m *session.Manager, path string) (lock, error) {
	e, err := election.New(m, path)
	if err != nil {
		return lock{}, err
	}
	acquire := func(ctx context.Context) (func(context.Context) error, error) {
		leads, resign, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- e.Run(ctx, func(ctx context.Context) error {
				close(leads)
				select {
				case <-resign:
					return errResigned
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		}()
		select {
		case <-leads:
		case err := <-ended:
			return nil, err
		}
		return func(context.Context) error {
			close(resign)
			if err := <-ended; !errors.Is(err, errResigned) {
				return err
			}
			return nil
		}, nil
	}
	return lock{acquire, e.Contenders}, nil
}
