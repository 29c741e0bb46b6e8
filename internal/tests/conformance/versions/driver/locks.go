package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
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

const (
	tick      = 200 * time.Millisecond // of the servers of the tests
	kept      = time.Minute            // how long a place is kept: longer than any test
	handovers = 2
)

// Main is the whole process.
func Main() error {
	return Serve(os.Stdin, os.Stdout, func(asked func(string)) (State, error) {
		timeout, err := time.ParseDuration(os.Getenv(TimeoutEnv))
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		m, err := session.Connect(ctx, os.Getenv(ServersEnv), session.WithTimeout(timeout), session.WithTickTime(tick),
			session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
			session.WithTrace(session.Trace{Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
				if lease, ok := queue.LeaseFrom(ctx); ok {
					go tell(lease, asked)
				}
				return nil
			}}))
		if err != nil {
			return nil, err
		}
		return &locks{m: m, asked: asked, made: make(map[string]*object)}, nil
	})
}

// tell tells when somebody asks for a lease.
func tell(lease *queue.Lease, asked func(string)) {
	select {
	case <-lease.Revoked():
		asked(lease.Path())
	case <-lease.Done():
	}
}

// locks are those of one version.
type locks struct {
	m     *session.Manager
	asked func(node string)

	mu   sync.Mutex
	made map[string]*object // by what they are
}

func (l *locks) Close() error { return l.m.Close() }

// object is a lock that several requests may use.
type object struct {
	acquire, try  func(context.Context) (lease, error)
	lock          func(context.Context) error
	tryLock       func(context.Context) (bool, error)
	unlock        func() error
	held          func() bool
	rlock         func(context.Context) error // of a read-write lock
	runlock       func() error
	rheld         func() bool
	resize        func(context.Context, int) error // of a semaphore
	limit         func(context.Context) (int, error)
	severalLeases func(context.Context, int, bool) (lease, error)
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

// methods are those that all locks have.
type methods[L lease] interface {
	Acquire(context.Context) (L, error)
	TryAcquire(context.Context) (L, error)
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
	Held() bool
}

func objectOf[L lease](m methods[L]) *object {
	return &object{
		acquire: method(m.Acquire), try: method(m.TryAcquire), lock: m.Lock, tryLock: m.TryLock, unlock: m.Unlock,
		held: m.Held,
	}
}

// object returns the lock that a request means.
func (l *locks) object(k Lock) (*object, error) {
	name := fmt.Sprintln(k.Kind, k.Path, k.Others, k.Key, k.Leases)
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.made[name]; o != nil {
		return o, nil
	}
	o, err := l.open(k)
	if err == nil {
		l.made[name] = o
	}
	return o, err
}

func (l *locks) open(k Lock) (*object, error) {
	switch k.Kind {
	case "mutex", "lazy", "local", "lazy local":
		mx, err := l.mutex(k.Path, k)
		if err != nil {
			return nil, err
		}
		return objectOf(mx), nil
	case "keyed":
		keyed, err := zklock.NewKeyed(l.m, k.Path)
		if err != nil {
			return nil, err
		}
		return objectOf(ofKey{keyed, k.Key}), nil
	case "multi":
		var all []zklock.ContextLocker
		for _, path := range append([]string{k.Path}, k.Others...) {
			mx, err := l.mutex(path, Lock{Kind: "mutex"})
			if err != nil {
				return nil, err
			}
			all = append(all, mx)
		}
		several, err := zklock.Multi(all...)
		if err != nil {
			return nil, err
		}
		return objectOf(several), nil
	case "write", "read", "lazy write", "lazy read":
		return l.readWrite(k)
	case "semaphore", "curator":
		return l.semaphore(k)
	}
	return nil, fmt.Errorf("no %q", k.Kind)
}

func (l *locks) mutex(path string, k Lock) (*zklock.Mutex, error) {
	var opts []zklock.Option
	switch k.Kind {
	case "lazy":
		opts = append(opts, zklock.WithLazyRelease(kept))
	case "local":
		opts = append(opts, zklock.WithLocalHandover(handovers))
	case "lazy local":
		opts = append(opts, zklock.WithLazyRelease(kept), zklock.WithLocalHandover(handovers))
	}
	return zklock.New(l.m, path, opts...)
}

// ofKey is the lock of one key.
type ofKey struct {
	*zklock.Keyed
	key string
}

func (o ofKey) Acquire(ctx context.Context) (*queue.Lease, error) { return o.Keyed.Acquire(ctx, o.key) }
func (o ofKey) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return o.Keyed.TryAcquire(ctx, o.key)
}
func (o ofKey) Lock(ctx context.Context) error            { return o.Keyed.Lock(ctx, o.key) }
func (o ofKey) TryLock(ctx context.Context) (bool, error) { return o.Keyed.TryLock(ctx, o.key) }
func (o ofKey) Unlock() error                             { return o.Keyed.Unlock(o.key) }
func (o ofKey) Held() bool                                { return o.Keyed.Held(o.key) }

func (l *locks) readWrite(k Lock) (*object, error) {
	var opts []rwlock.Option
	if k.Kind == "lazy write" || k.Kind == "lazy read" {
		opts = append(opts, rwlock.WithLazyRelease(kept))
	}
	rw, err := rwlock.New(l.m, k.Path, opts...)
	if err != nil {
		return nil, err
	}
	if k.Kind == "read" || k.Kind == "lazy read" {
		return objectOf(rw.Reader()), nil
	}
	o := objectOf(rw)
	o.rlock, o.runlock, o.rheld = rw.RLock, rw.RUnlock, rw.Reader().Held
	return o, nil
}

func (l *locks) semaphore(k Lock) (*object, error) {
	var opts []semaphore.Option
	if k.Kind == "curator" {
		opts = append(opts, semaphore.WithCuratorLayout())
	}
	sem, err := semaphore.New(l.m, k.Path, k.Leases, opts...)
	if err != nil {
		return nil, err
	}
	o := objectOf(sem)
	o.resize, o.limit = sem.Resize, sem.Limit
	o.severalLeases = func(ctx context.Context, n int, try bool) (lease, error) {
		if try {
			return method(func(ctx context.Context) (*queue.Lease, error) { return sem.TryAcquireN(ctx, n) })(ctx)
		}
		return method(func(ctx context.Context) (*queue.Lease, error) { return sem.AcquireN(ctx, n) })(ctx)
	}
	return o, nil
}

// Acquire waits until a lock is held, a candidate leads, or the function of a job is called.
func (l *locks) Acquire(ctx context.Context, k Lock, try bool) (*Hold, error) {
	switch k.Kind {
	case "election", "latch":
		return l.lead(ctx, k)
	case "job", "job once":
		return l.job(ctx, k, try)
	}
	o, err := l.object(k)
	if err != nil {
		return nil, err
	}
	if k.Owned {
		return o.byOwner(ctx, try)
	}
	acquire := o.acquire
	switch {
	case k.N > 1:
		acquire = func(ctx context.Context) (lease, error) { return o.severalLeases(ctx, k.N, try) }
	case try:
		acquire = o.try
	}
	got, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &Hold{Node: nodeOf(got), Held: func() bool { return got.Err() == nil }, Release: got.Release}, nil
}

// byOwner takes a lock for an owner of its own. So a write lock can become a read lock.
func (o *object) byOwner(ctx context.Context, try bool) (*Hold, error) {
	ctx = queue.WithOwner(ctx)
	if try {
		got, err := o.tryLock(ctx)
		if err != nil {
			return nil, err
		}
		if !got {
			return nil, errBusy
		}
	} else if err := o.lock(ctx); err != nil {
		return nil, err
	}
	return &Hold{
		Held:    o.held,
		Release: func(context.Context) error { return o.unlock() },
		Downgrade: func(context.Context) (*Hold, error) {
			if err := o.rlock(ctx); err != nil {
				return nil, err
			}
			return &Hold{Held: o.rheld, Release: func(context.Context) error { return o.runlock() }}, nil
		},
	}, nil
}

var (
	errBusy   = errors.New("busy")
	errNotRun = errors.New("the function was not called")
	errFailed = errors.New("the function has failed")
)

// during is a hold that lasts as long as the function that run is given.
func during(ctx context.Context, run func(context.Context, func(context.Context) error) error) (*Hold, error) {
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
		return &Hold{Node: node, Held: func() bool { return inside.Err() == nil }, Release: end(nil), Fail: end(errFailed)}, nil
	case err := <-ended:
		if err == nil {
			err = errNotRun
		}
		return nil, err
	}
}

// lead leads for one term.
func (l *locks) lead(ctx context.Context, k Lock) (*Hold, error) {
	e, err := l.election(k)
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

func (l *locks) election(k Lock) (*election.Election, error) {
	var opts []election.Option
	if k.Key != "" {
		opts = append(opts, election.WithID(k.Key))
	}
	if k.Kind == "latch" {
		opts = append(opts, election.WithLeaderLatch())
	}
	return election.New(l.m, k.Path, opts...)
}

func (l *locks) job(ctx context.Context, k Lock, try bool) (*Hold, error) {
	var opts []schedule.Option
	if k.Kind == "job once" {
		opts = append(opts, schedule.WithMaxTries(1))
	}
	j, err := schedule.New(l.m, k.Path, opts...)
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

// Ask answers all other requests.
func (l *locks) Ask(ctx context.Context, r Request) (string, error) {
	switch r.Verb {
	case "revoke":
		return "", zklock.Revoke(ctx, l.m, r.Node)
	case "resize", "limit":
		o, err := l.object(Lock{Kind: "semaphore", Path: r.Lock.Path, Leases: r.Lock.Leases})
		if err != nil {
			return "", err
		}
		if r.Verb == "resize" {
			return "", o.resize(ctx, r.Lock.N)
		}
		n, err := o.limit(ctx)
		return strconv.Itoa(n), err
	case "leader":
		e, err := l.election(r.Lock)
		if err != nil {
			return "", err
		}
		c, err := e.Leader(ctx)
		return c.ID, err
	case "last":
		j, err := schedule.New(l.m, r.Lock.Path)
		if err != nil {
			return "", err
		}
		last, err := j.Last(ctx)
		return fmt.Sprintf("tick %d, tries %d, done %t", last.Tick.Unix(), last.Tries, last.Done), err
	}
	return "", fmt.Errorf("no %q", r.Verb)
}

// reasons are words for errors, which do not depend on the version.
var reasons = []struct {
	err  error
	word string
}{
	{queue.ErrBusy, "busy"},
	{errBusy, "busy"},
	{errNotRun, "not run"},
	{errFailed, "failed"},
	{queue.ErrConflict, "conflict"},
	{election.ErrNoLeader, "no leader"},
	{session.ErrLost, "lost"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline"},
}

// Reason returns a word for an error.
func (l *locks) Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return "other"
}
