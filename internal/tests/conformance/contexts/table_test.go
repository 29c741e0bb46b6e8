package contexts

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

var (
	must    = expect.NoError
	wantErr = expect.Match
)

// world is a server of its own in virtual time.
type world struct {
	t      *testing.T
	server *zktest.Server
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{t, zktest.Start(t, zktest.ContainerCheck(24*time.Hour))})
	})
}

// connect returns a manager with a session, which for locks is another process.
func (w *world) connect(opts ...session.Option) *session.Manager {
	w.t.Helper()
	m, err := session.Connect(w.t.Context(), "zookeeper:2181", append([]session.Option{
		session.WithDialer(w.server.Dialer()), session.WithTimeout(30 * time.Second),
		session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	must(w.t, err)
	w.t.Cleanup(func() { _ = m.Close() })
	return m
}

// cut has the servers be away, until the returned function is called.
func (w *world) cut() (heal func()) {
	w.server.Refuse(true)
	w.server.Disconnect()
	synctest.Wait()
	return func() { w.server.Refuse(false) }
}

// lock is a kind of lock, as all of them are used.
type lock interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) (bool, error)
	Unlock() error
	Do(ctx context.Context, f func(context.Context) error) error
	TryDo(ctx context.Context, f func(context.Context) error) (bool, error)
}

// leaser is a lock that has leases.
type leaser interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
	TryAcquire(ctx context.Context) (*queue.Lease, error)
}

// kind is a kind of lock. Two locks of a kind at one path, of different managers, exclude each other.
type kind struct {
	new func(t *testing.T, m *session.Manager, path string) lock
	// rival makes a lock that excludes it. nil: new does.
	rival func(t *testing.T, m *session.Manager, path string) lock

	dirs   []string // where its nodes are, below the path
	shares bool     // several acquisitions share a node, which has no label
}

func made[L any](t *testing.T) func(l L, err error) L {
	return func(l L, err error) L {
		t.Helper()
		must(t, err)
		return l
	}
}

func mutex(opts ...zklock.Option) func(t *testing.T, m *session.Manager, path string) lock {
	return func(t *testing.T, m *session.Manager, path string) lock {
		return made[*zklock.Mutex](t)(zklock.New(m, path, opts...))
	}
}

func writer(opts ...rwlock.Option) func(t *testing.T, m *session.Manager, path string) lock {
	return func(t *testing.T, m *session.Manager, path string) lock {
		return made[*rwlock.RWMutex](t)(rwlock.New(m, path, opts...))
	}
}

func reader(opts ...rwlock.Option) func(t *testing.T, m *session.Manager, path string) lock {
	return func(t *testing.T, m *session.Manager, path string) lock {
		return made[*rwlock.RWMutex](t)(rwlock.New(m, path, opts...)).Reader()
	}
}

func sem(leases int, opts ...semaphore.Option) func(t *testing.T, m *session.Manager, path string) lock {
	return func(t *testing.T, m *session.Manager, path string) lock {
		return made[*semaphore.Semaphore](t)(semaphore.New(m, path, leases, opts...))
	}
}

func multi(t *testing.T, m *session.Manager, path string) lock {
	a := made[*zklock.Mutex](t)(zklock.New(m, path+"/a"))
	b := made[*rwlock.RWMutex](t)(rwlock.New(m, path+"/b"))
	return multiLock{made[*zklock.MultiLock](t)(zklock.Multi(a, b))}
}

// multiLock has the leases of a MultiLock as those of a lock: the first of each.
type multiLock struct{ *zklock.MultiLock }

func (l multiLock) Acquire(ctx context.Context) (*queue.Lease, error) {
	return first(l.MultiLock.Acquire(ctx))
}

func (l multiLock) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return first(l.MultiLock.TryAcquire(ctx))
}

func first(l *zklock.MultiLease, err error) (*queue.Lease, error) {
	if err != nil {
		return nil, err
	}
	return l.Leases()[0], nil
}

// key is a key of a Keyed.
type key struct{ *zklock.Keyed }

func keyed(t *testing.T, m *session.Manager, path string) lock {
	return key{made[*zklock.Keyed](t)(zklock.NewKeyed(m, path))}
}

func (k key) Lock(ctx context.Context) error            { return k.Keyed.Lock(ctx, "k") }
func (k key) TryLock(ctx context.Context) (bool, error) { return k.Keyed.TryLock(ctx, "k") }
func (k key) Unlock() error                             { return k.Keyed.Unlock("k") }
func (k key) Do(ctx context.Context, f func(context.Context) error) error {
	return k.Keyed.Do(ctx, "k", f)
}

func (k key) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	return k.Keyed.TryDo(ctx, "k", f)
}

func (k key) Acquire(ctx context.Context) (*queue.Lease, error) { return k.Keyed.Acquire(ctx, "k") }
func (k key) TryAcquire(ctx context.Context) (*queue.Lease, error) {
	return k.Keyed.TryAcquire(ctx, "k")
}

// once is a job, of which each call is for another tick. Its Lock is that of its mutex.
type once struct {
	*zklock.Mutex
	j *schedule.Job
	n int
}

func job(t *testing.T, m *session.Manager, path string) lock {
	return &once{
		Mutex: made[*zklock.Mutex](t)(zklock.New(m, path+"/lock")),
		j:     made[*schedule.Job](t)(schedule.New(m, path)),
	}
}

func (o *once) tick() time.Time {
	o.n++
	return time.Date(1999, 1, 1, o.n, 0, 0, 0, time.UTC)
}

func (o *once) Do(ctx context.Context, f func(context.Context) error) error {
	_, err := o.j.Run(ctx, o.tick(), f)
	return err
}

func (o *once) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	outcome, err := o.j.TryRun(ctx, o.tick(), f)
	return outcome == schedule.Ran, err
}

var kinds = map[string]kind{
	"mutex":               {new: mutex(), dirs: []string{""}},
	"mutex, async":        {new: mutex(zklock.WithAsyncRelease()), dirs: []string{""}},
	"mutex, hand-over":    {new: mutex(zklock.WithLocalHandover(3)), dirs: []string{""}, shares: true},
	"mutex, lazy":         {new: mutex(zklock.WithLazyRelease(time.Minute)), rival: mutex(), dirs: []string{""}, shares: true},
	"writer":              {new: writer(), dirs: []string{""}},
	"writer, lazy":        {new: writer(rwlock.WithLazyRelease(time.Minute)), rival: writer(), dirs: []string{""}, shares: true},
	"reader":              {new: reader(), rival: writer(), dirs: []string{""}},
	"reader, lazy":        {new: reader(rwlock.WithLazyRelease(time.Minute)), rival: writer(), dirs: []string{""}, shares: true},
	"semaphore":           {new: sem(1), dirs: []string{""}},
	"semaphore, Curators": {new: sem(1, semaphore.WithCuratorLayout()), dirs: []string{"/locks", "/leases"}},
	"MultiLock":           {new: multi, dirs: []string{"/a", "/b"}},
	"Keyed":               {new: keyed, rival: keyed, dirs: []string{"/k"}, shares: true},
	"job":                 {new: job, dirs: []string{"/lock"}},
}

// each runs f for each kind of lock, in virtual time.
func each(t *testing.T, f func(t *testing.T, w *world, k kind)) {
	for name, k := range kinds {
		if k.rival == nil {
			k.rival = k.new
		}
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) { f(t, w, k) })
		})
	}
}
