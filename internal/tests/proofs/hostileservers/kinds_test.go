package hostileservers

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// kind is a type of lock under attack.
type kind struct {
	name  string
	dirs  []string         // where its nodes are, below lockPath
	room  int              // what all holders may weigh together
	crowd int              // goroutines of the victim that want it
	open  opener           // the lock, for one manager
	heavy func(string) int // what a node weighs, by its prefix; nil: what it asks for
}

// opener returns what one round of a lock calls. The rounds of all goroutines of one manager
// share it.
type opener func(m *session.Manager) (get, error)

// get takes the lock; round is how many rounds there were before.
type get func(ctx context.Context, round int) (grant, error)

// grant is one hold. Its methods are those of a lease.
type grant interface {
	Err() error
	Release(ctx context.Context) error
	weight() int
	leases() []*queue.Lease // none, where the lock does not give them away
}

var kinds = []kind{
	{name: "fair", open: mutex(), room: 1, crowd: 1},
	{name: "local", open: mutex(zklock.WithLocalHandover(2)), room: 1, crowd: 2},
	{name: "rwlock", open: readWrite, room: writer, crowd: 1, heavy: writersWeigh},
	{name: "downgrade", open: downgrade, room: writer, crowd: 1, heavy: writersWeigh},
	{name: "semaphore", open: leases(), room: 3, crowd: 2},
	{name: "Curator's semaphore", open: leases(semaphore.WithCuratorLayout()), room: 3, crowd: 2,
		dirs: []string{"/leases", "/locks"}},
	{name: "multi", open: multi, room: 1, crowd: 1, dirs: []string{"", "/second", "/third"}},
}

// kindOf returns a kind by a fuzzer's number.
func kindOf(n byte) kind { return kinds[int(n)%len(kinds)] }

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

// dirsBelow returns those that are not lockPath itself.
func (k kind) dirsBelow() []string {
	return slices.DeleteFunc(k.paths(), func(dir string) bool { return dir == lockPath })
}

// weigh returns what a node takes of the room.
func (k kind) weigh(n queue.Node) int {
	if k.heavy != nil {
		return k.heavy(n.Prefix)
	}
	return n.Weight
}

// writer is what a writer weighs: more than all readers of a run together.
const writer = 10

func writersWeigh(prefix string) int {
	if prefix == queue.PrefixRead {
		return 1
	}
	return writer
}

// leased is a hold with a lease of its own.
type leased struct {
	*queue.Lease
	weighs int
}

func (l leased) weight() int            { return l.weighs }
func (l leased) leases() []*queue.Lease { return []*queue.Lease{l.Lease} }

// grantOf returns a hold, or the error that there is instead.
func grantOf(l *queue.Lease, err error, weighs int) (grant, error) {
	if err != nil {
		return nil, err
	}
	return leased{l, weighs}, nil
}

func mutex(opts ...zklock.Option) opener {
	return func(m *session.Manager) (get, error) {
		mx, err := zklock.New(m, lockPath, opts...)
		return func(ctx context.Context, _ int) (grant, error) {
			l, err := mx.Acquire(ctx)
			return grantOf(l, err, 1)
		}, err
	}
}

// readWrite writes and reads in turn.
func readWrite(m *session.Manager) (get, error) {
	rw, err := rwlock.New(m, lockPath)
	return func(ctx context.Context, round int) (grant, error) {
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

func (d downgraded) weight() int                   { return 1 }
func (d downgraded) leases() []*queue.Lease        { return nil }
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
	return func(ctx context.Context, round int) (grant, error) {
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
		return downgraded{rw}, nil
	}, err
}

// leases takes one or two of three.
func leases(opts ...semaphore.Option) opener {
	return func(m *session.Manager) (get, error) {
		s, err := semaphore.New(m, lockPath, 3, opts...)
		return func(ctx context.Context, round int) (grant, error) {
			n := 1 + round%2
			if len(opts) > 0 { // a node of Curator's layout is one lease
				n = 1
			}
			l, err := s.AcquireN(ctx, n)
			return grantOf(l, err, n)
		}, err
	}
}

// several is a hold of several locks.
type several struct{ *zklock.MultiLease }

func (s several) weight() int            { return 1 }
func (s several) leases() []*queue.Lease { return s.Leases() }

// multi takes a mutex, the one lease of a semaphore and a write lock together.
func multi(m *session.Manager) (get, error) {
	var locks []zklock.ContextLocker
	first, err := zklock.New(m, lockPath)
	locks = append(locks, first)
	second, err2 := semaphore.New(m, lockPath+"/second", 1)
	locks = append(locks, second)
	third, err3 := rwlock.New(m, lockPath+"/third")
	locks = append(locks, third)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	all, err := zklock.Multi(locks...)
	return func(ctx context.Context, _ int) (grant, error) {
		l, err := all.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return several{l}, nil
	}, err
}

func nodesOf(g grant) string {
	out := ""
	for _, l := range g.leases() {
		out += " " + path.Base(l.Path())
	}
	return out
}
