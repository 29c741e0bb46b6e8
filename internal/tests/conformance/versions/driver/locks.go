package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// object is a lock that several requests may use.
type object struct {
	acquire, try func(context.Context) (lease, error)
	rw           *rwlock.RWMutex
	sem          *semaphore.Semaphore
}

type lease interface {
	Err() error
	Release(context.Context) error
}

// nodeOf returns the node of a lease, or the first of several.
func nodeOf(l lease) string {
	switch l := l.(type) {
	case *queue.Lease:
		return l.Path()
	case *zklock.MultiLease:
		return l.Leases()[0].Path()
	}
	return ""
}

// method makes a lease of any type that of an object. A nil pointer in a lease would not be nil.
func method[L lease](f func(context.Context) (L, error)) func(context.Context) (lease, error) {
	return func(ctx context.Context) (lease, error) {
		l, err := f(ctx)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
}

// leaser is what all locks have.
type leaser[L lease] interface {
	Acquire(context.Context) (L, error)
	TryAcquire(context.Context) (L, error)
}

func objectOf[L lease](of leaser[L], err error) (*object, error) {
	if err != nil {
		return nil, err
	}
	return &object{acquire: method(of.Acquire), try: method(of.TryAcquire)}, nil
}

// object returns the lock that a request means.
func (s *server) object(k Lock) (*object, error) {
	name := fmt.Sprintln(k.Kind, k.Path, k.Others, k.Key, k.Leases)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.made[name]; o != nil {
		return o, nil
	}
	o, err := s.open(k)
	if err == nil {
		s.made[name] = o
	}
	return o, err
}

func (s *server) open(k Lock) (*object, error) {
	switch k.Kind {
	case "mutex", "lazy", "lazy local":
		var opts []zklock.Option
		if k.Kind != "mutex" {
			opts = append(opts, zklock.WithLazyRelease(kept))
		}
		if k.Kind == "lazy local" {
			opts = append(opts, zklock.WithLocalHandover(handovers))
		}
		return objectOf(zklock.New(s.m, k.Path, opts...))
	case "keyed":
		keyed, err := zklock.NewKeyed(s.m, k.Path)
		return &object{
			acquire: method(func(ctx context.Context) (*queue.Lease, error) { return keyed.Acquire(ctx, k.Key) }),
			try:     method(func(ctx context.Context) (*queue.Lease, error) { return keyed.TryAcquire(ctx, k.Key) }),
		}, err
	case "multi":
		var all []zklock.ContextLocker
		for _, path := range append([]string{k.Path}, k.Others...) {
			mx, err := zklock.New(s.m, path)
			if err != nil {
				return nil, err
			}
			all = append(all, mx)
		}
		return objectOf(zklock.Multi(all...))
	case "write", "read", "lazy write", "lazy read":
		var opts []rwlock.Option
		if k.Kind == "lazy write" || k.Kind == "lazy read" {
			opts = append(opts, rwlock.WithLazyRelease(kept))
		}
		rw, err := rwlock.New(s.m, k.Path, opts...)
		if err == nil && (k.Kind == "read" || k.Kind == "lazy read") {
			return objectOf(rw.Reader(), nil)
		}
		o, err := objectOf(rw, err)
		if err == nil {
			o.rw = rw
		}
		return o, err
	case "semaphore", "curator":
		var opts []semaphore.Option
		if k.Kind == "curator" {
			opts = append(opts, semaphore.WithCuratorLayout())
		}
		sem, err := semaphore.New(s.m, k.Path, k.Leases, opts...)
		o, err := objectOf(sem, err)
		if err == nil {
			o.sem = sem
		}
		return o, err
	}
	return nil, fmt.Errorf("no %q", k.Kind)
}

// acquire waits until a lock is held, a candidate leads, or the function of a job is called.
func (s *server) acquire(ctx context.Context, k Lock, try bool) (*hold, error) {
	switch k.Kind {
	case "election", "latch":
		return s.lead(ctx, k)
	case "job", "job once":
		return s.job(ctx, k, try)
	}
	o, err := s.object(k)
	if err != nil {
		return nil, err
	}
	acquire := o.acquire
	switch {
	case k.Owned:
		return byOwner(ctx, o.rw, try)
	case k.N > 1:
		get := o.sem.AcquireN
		if try {
			get = o.sem.TryAcquireN
		}
		acquire = method(func(ctx context.Context) (*queue.Lease, error) { return get(ctx, k.N) })
	case try:
		acquire = o.try
	}
	got, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &hold{node: nodeOf(got), held: func() bool { return got.Err() == nil }, release: got.Release}, nil
}

// byOwner takes a write lock for an owner of its own. So it can become a read lock.
func byOwner(ctx context.Context, rw *rwlock.RWMutex, try bool) (*hold, error) {
	ctx = queue.WithOwner(ctx)
	got, err := true, error(nil)
	if try {
		got, err = rw.TryLock(ctx)
	} else {
		err = rw.Lock(ctx)
	}
	if err == nil && !got {
		err = queue.ErrBusy
	}
	if err != nil {
		return nil, err
	}
	return &hold{
		held:    rw.Held,
		release: func(context.Context) error { return rw.Unlock() },
		downgrade: func(context.Context) (*hold, error) {
			if err := rw.RLock(ctx); err != nil {
				return nil, err
			}
			return &hold{held: rw.Reader().Held, release: func(context.Context) error { return rw.RUnlock() }}, nil
		},
	}, nil
}

var (
	errNotRun = errors.New("the function was not called")
	errFailed = errors.New("the function has failed")
)

// during is a hold that lasts as long as the function that run is given.
func during(ctx context.Context, run func(context.Context, func(context.Context) error) error) (*hold, error) {
	var once sync.Once
	called, result, ended := make(chan context.Context, 1), make(chan error, 1), make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		ended <- run(running, func(ctx context.Context) error {
			once.Do(func() { called <- ctx })
			err := <-result
			result <- err // for the next term
			return err
		})
	}()
	end := func(err error) func(context.Context) error {
		return func(context.Context) error {
			result <- err
			return <-ended
		}
	}
	select {
	case inside := <-called:
		node := ""
		if l, ok := queue.LeaseFrom(inside); ok {
			node = l.Path()
		}
		return &hold{node: node, held: func() bool { return inside.Err() == nil }, release: end(nil), fail: end(errFailed)}, nil
	case err := <-ended:
		if err == nil {
			err = errNotRun
		}
		return nil, err
	}
}

// lead leads for one term.
func (s *server) lead(ctx context.Context, k Lock) (*hold, error) {
	e, err := s.election(k)
	if err != nil {
		return nil, err
	}
	return during(ctx, func(ctx context.Context, f func(context.Context) error) error {
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

func (s *server) election(k Lock) (*election.Election, error) {
	var opts []election.Option
	if k.Key != "" {
		opts = append(opts, election.WithID(k.Key))
	}
	if k.Kind == "latch" {
		opts = append(opts, election.WithLeaderLatch())
	}
	return election.New(s.m, k.Path, opts...)
}

func (s *server) job(ctx context.Context, k Lock, try bool) (*hold, error) {
	var opts []schedule.Option
	if k.Kind == "job once" {
		opts = append(opts, schedule.WithMaxTries(1))
	}
	j, err := schedule.New(s.m, k.Path, opts...)
	if err != nil {
		return nil, err
	}
	run := j.Run
	if try {
		run = j.TryRun
	}
	return during(ctx, func(ctx context.Context, f func(context.Context) error) error {
		_, err := run(ctx, time.Unix(k.Tick, 0), f)
		return err
	})
}

// ask answers all other requests.
func (s *server) ask(ctx context.Context, r Request) (string, error) {
	switch r.Verb {
	case "revoke":
		return "", zklock.Revoke(ctx, s.m, r.Node)
	case "resize", "limit":
		o, err := s.object(Lock{Kind: "semaphore", Path: r.Lock.Path, Leases: r.Lock.Leases})
		if err != nil {
			return "", err
		}
		if r.Verb == "resize" {
			return "", o.sem.Resize(ctx, r.Lock.N)
		}
		n, err := o.sem.Limit(ctx)
		return strconv.Itoa(n), err
	case "leader":
		e, err := s.election(r.Lock)
		if err != nil {
			return "", err
		}
		c, err := e.Leader(ctx)
		return c.ID, err
	case "last":
		j, err := schedule.New(s.m, r.Lock.Path)
		if err != nil {
			return "", err
		}
		last, err := j.Last(ctx)
		return fmt.Sprintf("tick %d, tries %d, done %t", last.Tick.Unix(), last.Tries, last.Done), err
	}
	return "", fmt.Errorf("no %q", r.Verb)
}

// reason returns a word for an error, which does not depend on the version.
func reason(err error) string {
	for word, is := range map[string]error{
		"busy": queue.ErrBusy, "not run": errNotRun, "failed": errFailed, "conflict": queue.ErrConflict,
		"no leader": election.ErrNoLeader, "lost": session.ErrLost,
	} {
		if errors.Is(err, is) {
			return word
		}
	}
	return "other"
}
