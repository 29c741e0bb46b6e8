package hostileservers

import (
	"context"
	"errors"
	"path"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// kind is a type of lock under attack.
type kind struct {
	name  string
	dirs  []string // where its nodes are, below lockPath
	room  int      // what all holders may weigh together
	crowd int      // goroutines of the victim that want it
	open  opener   // the lock, for one manager
}

// opener returns what one round of a lock calls. The rounds of all goroutines of one manager
// share it.
type opener func(m *session.Manager) (get, error)

// get takes the lock; round is how many rounds there were before.
type get func(ctx context.Context, round int) (*grant, error)

// grant is one hold.
type grant struct {
	held
	weight int
	leases []*queue.Lease // none, where the lock does not give them away
}

type held interface {
	Err() error
	Release(ctx context.Context) error
}

var kinds = []kind{
	{name: "fair", open: mutex(), room: 1, crowd: 1},
	{name: "local", open: mutex(zklock.WithLocalHandover(2)), room: 1, crowd: 2},
	{name: "rwlock", open: readWrite, room: writer, crowd: 1},
	{name: "downgrade", open: downgrade, room: writer, crowd: 1},
	{name: "semaphore", open: leases(), room: 3, crowd: 2},
	{name: "Curator's semaphore", open: leases(semaphore.WithCuratorLayout()), room: 3, crowd: 2,
		dirs: []string{"/leases", "/locks"}},
	{name: "multi", open: multi, room: 1, crowd: 1, dirs: []string{"", "/second", "/third"}},
}

// paths returns the directories of the kind's nodes.
func (k kind) paths() []string {
	if len(k.dirs) == 0 {
		return []string{lockPath}
	}
	var out []string
	for _, dir := range k.dirs {
		out = append(out, lockPath+dir)
	}
	return out
}

// writer is what a writer weighs: more than all readers of a run together.
const writer = 10

// grantOf returns a hold of one lease, or the error that there is instead.
func grantOf(l *queue.Lease, err error, weight int) (*grant, error) {
	if err != nil {
		return nil, err
	}
	return &grant{l, weight, []*queue.Lease{l}}, nil
}

func mutex(opts ...zklock.Option) opener {
	return func(m *session.Manager) (get, error) {
		mx, err := zklock.New(m, lockPath, opts...)
		return func(ctx context.Context, _ int) (*grant, error) {
			l, err := mx.Acquire(ctx)
			return grantOf(l, err, 1)
		}, err
	}
}

// readWrite writes and reads in turn.
func readWrite(m *session.Manager) (get, error) {
	rw, err := rwlock.New(m, lockPath)
	return func(ctx context.Context, round int) (*grant, error) {
		if round%2 == 0 {
			l, err := rw.Acquire(ctx)
			return grantOf(l, err, writer)
		}
		l, err := rw.Reader().Acquire(ctx)
		return grantOf(l, err, 1)
	}, err
}

// downgraded is a read lock that was a write lock.
type downgraded struct{ rw *rwlock.RWMutex }

func (d downgraded) Release(context.Context) error { return d.rw.RUnlock() }
func (d downgraded) Err() error {
	if !d.rw.Reader().Held() {
		return session.ErrLost
	}
	return nil
}

// downgrade takes the write lock and makes it a read lock.
func downgrade(m *session.Manager) (get, error) {
	rw, err := rwlock.New(m, lockPath)
	return func(ctx context.Context, round int) (*grant, error) {
		if round%3 == 2 { // one that others have to wait for, and that waits for them
			l, err := rw.Acquire(ctx)
			return grantOf(l, err, writer)
		}
		ctx = queue.WithOwner(ctx)
		if err := rw.Lock(ctx); err != nil {
			return nil, err
		}
		err := rw.RLock(ctx)
		if unlocked := rw.Unlock(); err == nil && unlocked != nil {
			err = errors.Join(unlocked, rw.RUnlock())
		}
		if err != nil {
			return nil, err
		}
		return &grant{downgraded{rw}, 1, nil}, nil
	}, err
}

// leases takes one or two of three.
func leases(opts ...semaphore.Option) opener {
	return func(m *session.Manager) (get, error) {
		s, err := semaphore.New(m, lockPath, 3, opts...)
		return func(ctx context.Context, round int) (*grant, error) {
			n := 1 + round%2
			if len(opts) > 0 { // a node of Curator's layout is one lease
				n = 1
			}
			l, err := s.AcquireN(ctx, n)
			return grantOf(l, err, n)
		}, err
	}
}

// multi takes a mutex, the one lease of a semaphore and a write lock together.
func multi(m *session.Manager) (get, error) {
	first, err := zklock.New(m, lockPath)
	second, err2 := semaphore.New(m, lockPath+"/second", 1)
	third, err3 := rwlock.New(m, lockPath+"/third")
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	all, err := zklock.Multi(first, second, third)
	return func(ctx context.Context, _ int) (*grant, error) {
		l, err := all.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return &grant{l, 1, l.Leases()}, nil
	}, err
}

func nodesOf(g *grant) string {
	out := ""
	for _, l := range g.leases {
		out += " " + path.Base(l.Path())
	}
	return out
}
