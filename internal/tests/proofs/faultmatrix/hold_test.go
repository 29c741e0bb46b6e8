package faultmatrix

import (
	"context"
	"errors"
	"path"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// lease is a hold of one lease.
type lease struct{ *queue.Lease }

func single(l *queue.Lease, err error) (hold, error) {
	if err != nil {
		return nil, err
	}
	return lease{l}, nil
}

// settle waits until the watch on the holder's own node is set, which is its last request.
func (l lease) settle(ctx context.Context) error {
	_, err := l.Token(ctx)
	return err
}

func (l lease) leases() []*queue.Lease { return []*queue.Lease{l.Lease} }

func (l lease) standing(ctx context.Context, c *cell) ([]string, error) {
	return standingOf(ctx, c.site, l.leases())
}

// several is a hold of several locks as one.
type several struct{ *zklock.MultiLease }

func (s several) leases() []*queue.Lease { return s.Leases() }

func (s several) standing(ctx context.Context, c *cell) ([]string, error) {
	return standingOf(ctx, c.site, s.leases())
}

func (s several) settle(ctx context.Context) error {
	for _, l := range s.Leases() {
		if _, err := l.Token(ctx); err != nil {
			return err
		}
	}
	return nil
}

// doing is a hold within a Do.
type doing struct {
	lease
	inside context.Context // of the function
	end    context.CancelFunc
	over   <-chan error
}

func takeDoing(ctx context.Context, m *session.Manager, dir string, opt zklock.Option) (*doing, error) {
	mx, err := zklock.New(m, dir, opt)
	if err != nil {
		return nil, err
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	held, over := make(chan context.Context, 1), make(chan error, 1)
	go func() {
		over <- mx.Do(ctx, func(inside context.Context) error {
			held <- inside
			<-work.Done()
			return inside.Err()
		})
	}()
	select {
	case inside := <-held:
		l, _ := queue.LeaseFrom(inside)
		return &doing{lease{l}, inside, end, over}, nil
	case err := <-over:
		end()
		return nil, err
	}
}

// Release ends the Do. That says no more than that the release is under way, unless the lock was lost.
func (d *doing) Release(context.Context) error {
	d.end()
	if err := <-d.over; err != nil {
		return err
	}
	return queue.ErrReleasePending
}

func asyncMutex(ctx context.Context, m *session.Manager, dir string) (hold, error) {
	d, err := takeDoing(ctx, m, dir, zklock.WithAsyncRelease())
	if err != nil {
		return nil, err
	}
	return d, nil
}

// downgraded is a write lock, and then a read lock in its place. It is taken with WithOwner, which
// shows no leases.
type downgraded struct {
	rw    *rwlock.RWMutex
	owner context.Context
	in    *session.Session
	reads bool // RUnlock is due; before, Unlock is
}

func downgrader(ctx context.Context, m *session.Manager, dir string) (hold, error) {
	rw, err := rwlock.New(m, dir)
	if err != nil {
		return nil, err
	}
	owner := queue.WithOwner(ctx)
	if err := rw.Lock(owner); err != nil {
		return nil, err
	}
	s, err := m.Session(ctx)
	if err != nil {
		return nil, errors.Join(err, rw.Unlock())
	}
	return &downgraded{rw: rw, owner: owner, in: s}, nil
}

func (d *downgraded) leases() []*queue.Lease { return nil }
func (d *downgraded) Done() <-chan struct{}  { return nil }

func (d *downgraded) Err() error {
	if d.rw.Reader().Held() || d.rw.Held() {
		return nil
	}
	return session.ErrLost
}

// settle takes the read lock and gives up the write lock.
func (d *downgraded) settle(context.Context) error {
	if err := d.rw.RLock(d.owner); err != nil {
		return err
	}
	d.reads = true
	return d.rw.Unlock()
}

// standing finds its node by the session and the present kind.
func (d *downgraded) standing(ctx context.Context, c *cell) (nodes []string, err error) {
	prefix := queue.PrefixWrite
	if d.reads {
		prefix = queue.PrefixRead
	}
	names, err := c.site.children(ctx, d.rw.Path())
	for _, name := range names {
		node := path.Join(d.rw.Path(), name)
		n, _ := queue.ParseNode(name)
		stat, e := c.site.stat(ctx, node)
		if err = errors.Join(err, e); stat != nil && n.Prefix == prefix && stat.EphemeralOwner == d.in.ID() {
			nodes = append(nodes, node)
		}
	}
	return nodes, err
}

// Release unlocks. That says no more than that the release is under way, unless the lock was lost.
func (d *downgraded) Release(context.Context) error {
	unlock := d.rw.Unlock
	if d.reads {
		unlock = d.rw.RUnlock
	}
	if err := unlock(); err != nil {
		return err
	}
	return queue.ErrReleasePending
}
