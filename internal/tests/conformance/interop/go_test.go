package interop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// take takes a lock and returns a function that gives it back.
type take func(context.Context) (release func() error, err error)

// kinds are Go's locks, each with its mode and how to open a client of its own.
var kinds = map[string]struct {
	mode string
	open func(t *testing.T, s *site) (take, error)
}{
	"mutex":      {exclusive, openMutex(false)},
	"zk.Lock":    {exclusive, openZkLock},
	"read":       {shared, openRW(false, (*rwlock.RWMutex).RLock, (*rwlock.RWMutex).RUnlock)},
	"write":      {exclusive, openRW(false, (*rwlock.RWMutex).Lock, (*rwlock.RWMutex).Unlock)},
	"semaphore":  {shared, openSemaphore},
	"lazy-mutex": {exclusive, openMutex(true)},
	"lazy-read":  {shared, openRW(true, (*rwlock.RWMutex).RLock, (*rwlock.RWMutex).RUnlock)},
	"lazy-write": {exclusive, openRW(true, (*rwlock.RWMutex).Lock, (*rwlock.RWMutex).Unlock)},
}

// keep is for how long the lazy locks keep their places: longer than any test waits for something. A place is
// kept for a session timeout at most.
const keep = 3 * testserver.Patience

func openMutex(lazy bool) func(t *testing.T, s *site) (take, error) {
	return func(t *testing.T, s *site) (take, error) {
		var opts []zklock.Option
		if lazy {
			opts = append(opts, zklock.WithLazyRelease(keep))
		}
		mx, err := zklock.New(connect(t, session.WithTimeout(keep)), s.path, opts...)
		return func(ctx context.Context) (func() error, error) { return mx.Unlock, mx.Lock(ctx) }, err
	}
}

func openRW(
	lazy bool, lock func(*rwlock.RWMutex, context.Context) error, unlock func(*rwlock.RWMutex) error,
) func(t *testing.T, s *site) (take, error) {
	return func(t *testing.T, s *site) (take, error) {
		var opts []rwlock.Option
		if lazy {
			opts = append(opts, rwlock.WithLazyRelease(keep))
		}
		rw, err := rwlock.New(connect(t, session.WithTimeout(keep)), s.path, opts...)
		return func(ctx context.Context) (func() error, error) {
			return func() error { return unlock(rw) }, lock(rw, ctx)
		}, err
	}
}

func openSemaphore(t *testing.T, s *site) (take, error) {
	sem, err := semaphore.New(connect(t), s.path, s.leases, semaphore.WithCuratorLayout())
	return func(ctx context.Context) (func() error, error) { return sem.Unlock, sem.Lock(ctx) }, err
}

// openZkLock opens the lock of go-zookeeper. It takes no context: a call ends with its connection.
func openZkLock(t *testing.T, s *site) (take, error) {
	conn, _, err := zk.Connect([]string{testserver.Server(t).Addr(0)}, testserver.Patience, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	t.Cleanup(conn.Close)
	lock := zk.NewLock(conn, s.path, zk.WorldACL(zk.PermAll))
	return func(context.Context) (func() error, error) { return lock.Unlock, lock.Lock() }, nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// connect returns a manager that is not shared with another client.
func connect(t *testing.T, opts ...session.Option) *session.Manager {
	t.Helper()
	return testserver.Connect(t, testserver.Server(t).Addr(0), opts...)
}

// goCrew is this module, and go-zookeeper.
type goCrew struct {
	*site
	ctx context.Context
	g   errgroup.Group
}

func newGo(t *testing.T, s *site) crew {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	c := &goCrew{site: s, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		_ = c.g.Wait() // reported by finish, or the test has failed already
	})
	return c
}

func (c *goCrew) enter(t *testing.T, client, name string, times int) {
	t.Helper()
	kind := kinds[name]
	lock, err := kind.open(t, c.site)
	must(t, err)
	c.g.Go(func() error {
		for range times {
			if err := c.once(lock, client, kind.mode); err != nil {
				return fmt.Errorf("%s: %w", client, err)
			}
		}
		return nil
	})
}

func (c *goCrew) once(lock take, client, mode string) error {
	release, err := lock(c.ctx)
	if err != nil {
		return err
	}
	err = c.visit(c.ctx, client, mode)
	if e := release(); !errors.Is(e, queue.ErrReleasePending) { // a slow machine
		err = errors.Join(err, e)
	}
	return err
}

func (c *goCrew) finish() error { return c.g.Wait() }
