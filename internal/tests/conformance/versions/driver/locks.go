package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
)

// object returns the lock that a request means. The requests for one lock use the same object.
func (d *Driver) object(k Lock) (any, error) {
	name := fmt.Sprintln(k.Kind, k.Path, k.Others, k.Leases)
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.made[name]; o != nil {
		return o, nil
	}
	o, err := d.open(k)
	if err == nil {
		d.made[name] = o
	}
	return o, err
}

func (d *Driver) open(k Lock) (any, error) {
	switch k.Kind {
	case "mutex":
		return zklock.New(d.m, k.Path)
	case "lazy":
		return zklock.New(d.m, k.Path, zklock.WithLazyRelease(kept))
	case "lazy local":
		return zklock.New(d.m, k.Path, zklock.WithLazyRelease(kept), zklock.WithLocalHandover(handovers))
	case "keyed":
		return zklock.NewKeyed(d.m, k.Path)
	case "multi":
		var all []zklock.ContextLocker
		for _, path := range append([]string{k.Path}, k.Others...) {
			mx, err := zklock.New(d.m, path)
			if err != nil {
				return nil, err
			}
			all = append(all, mx)
		}
		return zklock.Multi(all...)
	case "write", "read", "owned write":
		return rwlock.New(d.m, k.Path)
	case "lazy write", "lazy read":
		return rwlock.New(d.m, k.Path, rwlock.WithLazyRelease(kept))
	case "semaphore":
		return semaphore.New(d.m, k.Path, k.Leases)
	case "curator":
		return semaphore.New(d.m, k.Path, k.Leases, semaphore.WithCuratorLayout())
	}
	return nil, fmt.Errorf("no %q", k.Kind)
}

// acquire waits until a lock is held, a candidate leads, or the function of a job is called.
func (d *Driver) acquire(k Lock, try bool) (*hold, error) {
	switch k.Kind {
	case "election", "latch":
		return d.lead(k)
	case "job", "job once":
		return d.job(k, try)
	}
	o, err := d.object(k)
	if err != nil {
		return nil, err
	}
	if k.Kind == "owned write" {
		return byOwner(queue.WithOwner(d.ctx), o.(*rwlock.RWMutex))
	}
	if multi, ok := o.(*zklock.MultiLock); ok {
		got, err := either(try, multi.TryAcquire, multi.Acquire)(d.ctx)
		if err != nil {
			return nil, err
		}
		return &hold{
			node: got.Leases()[0].Path(), held: func() bool { return got.Err() == nil },
			release: func(ctx context.Context, _ error) error { return got.Release(ctx) },
		}, nil
	}
	got, err := lease(d.ctx, o, k, try)
	if err != nil {
		return nil, err
	}
	return &hold{
		node: got.Path(), held: func() bool { return got.Err() == nil }, revoked: got.Revoked(),
		release: func(ctx context.Context, _ error) error { return got.Release(ctx) },
	}, nil
}

func either[F any](try bool, yes, no F) F {
	if try {
		return yes
	}
	return no
}

func lease(ctx context.Context, o any, k Lock, try bool) (*queue.Lease, error) {
	switch o := o.(type) {
	case *zklock.Keyed:
		return either(try, o.TryAcquire, o.Acquire)(ctx, k.Key)
	case *semaphore.Semaphore:
		return either(try, o.TryAcquireN, o.AcquireN)(ctx, max(k.N, 1))
	case *rwlock.RWMutex:
		if strings.HasSuffix(k.Kind, "read") {
			return either(try, o.Reader().TryAcquire, o.Reader().Acquire)(ctx)
		}
		return either(try, o.TryAcquire, o.Acquire)(ctx)
	case *zklock.Mutex:
		return either(try, o.TryAcquire, o.Acquire)(ctx)
	}
	return nil, fmt.Errorf("no leases of a %T", o)
}

// byOwner takes a write lock for the owner of ctx. So it can become a read lock.
func byOwner(ctx context.Context, rw *rwlock.RWMutex) (*hold, error) {
	if err := rw.Lock(ctx); err != nil {
		return nil, err
	}
	return &hold{
		release: func(context.Context, error) error { return rw.Unlock() },
		downgrade: func() (*hold, error) {
			err := rw.RLock(ctx)
			return &hold{release: func(context.Context, error) error { return rw.RUnlock() }}, err
		},
	}, nil
}

// during is a hold that lasts as long as the function that run is given.
func (d *Driver) during(run func(context.Context, func(context.Context) error) error) (*hold, error) {
	called, result, ended := make(chan context.Context, 1), make(chan error, 1), make(chan error, 1)
	running, stop := context.WithCancel(d.ctx)
	go func() {
		defer stop()
		ended <- run(running, func(ctx context.Context) error {
			called <- ctx
			select {
			case err := <-result:
				return err
			case <-d.ctx.Done():
				return d.ctx.Err()
			}
		})
	}()
	select {
	case inside := <-called:
		return &hold{held: func() bool { return inside.Err() == nil }, release: func(_ context.Context, failed error) error {
			result <- failed
			return <-ended
		}}, nil
	case err := <-ended:
		if err == nil {
			err = errNotRun
		}
		return nil, err
	}
}

// lead leads for one term.
func (d *Driver) lead(k Lock) (*hold, error) {
	e, err := d.election(k)
	if err != nil {
		return nil, err
	}
	return d.during(func(ctx context.Context, f func(context.Context) error) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := e.Run(ctx, func(ctx context.Context) error {
			defer cancel()
			return f(ctx)
		})
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
}

func (d *Driver) election(k Lock) (*election.Election, error) {
	var opts []election.Option
	if k.Key != "" {
		opts = append(opts, election.WithID(k.Key))
	}
	if k.Kind == "latch" {
		opts = append(opts, election.WithLeaderLatch())
	}
	return election.New(d.m, k.Path, opts...)
}

func (d *Driver) job(k Lock, try bool) (*hold, error) {
	var opts []schedule.Option
	if k.Kind == "job once" {
		opts = append(opts, schedule.WithMaxTries(1))
	}
	j, err := schedule.New(d.m, k.Path, opts...)
	if err != nil {
		return nil, err
	}
	return d.during(func(ctx context.Context, f func(context.Context) error) error {
		_, err := either(try, j.TryRun, j.Run)(ctx, time.Unix(k.Tick, 0), f)
		return err
	})
}
