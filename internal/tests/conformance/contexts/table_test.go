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
func (w *world) connect() *session.Manager {
	w.t.Helper()
	m, err := session.Connect(w.t.Context(), "zookeeper:2181", session.WithDialer(w.server.Dialer()),
		session.WithTimeout(30*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)))
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

// lock is a kind of lock. Some also have an Acquire.
type lock interface {
	Do(ctx context.Context, f func(context.Context) error) error
	TryDo(ctx context.Context, f func(context.Context) error) (bool, error)
}

type leaser interface {
	Acquire(ctx context.Context) (*queue.Lease, error)
}

// maker makes a lock of a kind.
type maker func(m *session.Manager, path string) (lock, error)

// made returns what a constructor has made.
func made[L any](t *testing.T) func(l L, err error) L {
	return func(l L, err error) L {
		t.Helper()
		must(t, err)
		return l
	}
}

func mutex(opts ...zklock.Option) maker {
	return func(m *session.Manager, path string) (lock, error) { return zklock.New(m, path, opts...) }
}

func writer(opts ...rwlock.Option) maker {
	return func(m *session.Manager, path string) (lock, error) { return rwlock.New(m, path, opts...) }
}

func reader(opts ...rwlock.Option) maker {
	return func(m *session.Manager, path string) (lock, error) {
		rw, err := rwlock.New(m, path, opts...)
		if err != nil {
			return nil, err
		}
		return rw.Reader(), nil
	}
}

func sem(opts ...semaphore.Option) maker {
	return func(m *session.Manager, path string) (lock, error) { return semaphore.New(m, path, 1, opts...) }
}

func multi(m *session.Manager, path string) (*zklock.MultiLock, error) {
	a, err := zklock.New(m, path+"/a")
	if err != nil {
		return nil, err
	}
	b, err := rwlock.New(m, path+"/b")
	if err != nil {
		return nil, err
	}
	return zklock.Multi(a, b)
}

// key is a key of a Keyed.
type key struct{ *zklock.Keyed }

func (k key) Do(ctx context.Context, f func(context.Context) error) error {
	return k.Keyed.Do(ctx, "k", f)
}

func (k key) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	return k.Keyed.TryDo(ctx, "k", f)
}

func (k key) Acquire(ctx context.Context) (*queue.Lease, error) { return k.Keyed.Acquire(ctx, "k") }

// once is a job, of which each call is for another tick.
type once struct {
	*schedule.Job
	n int
}

func (o *once) tick() time.Time {
	o.n++
	return time.Date(1999, 1, 1, o.n, 0, 0, 0, time.UTC)
}

func (o *once) Do(ctx context.Context, f func(context.Context) error) error {
	_, err := o.Run(ctx, o.tick(), f)
	return err
}

func (o *once) TryDo(ctx context.Context, f func(context.Context) error) (bool, error) {
	outcome, err := o.TryRun(ctx, o.tick(), f)
	return outcome == schedule.Ran, err
}

var kinds = map[string]maker{
	"mutex":               mutex(),
	"mutex, async":        mutex(zklock.WithAsyncRelease()),
	"mutex, hand-over":    mutex(zklock.WithLocalHandover(3)),
	"mutex, lazy":         mutex(zklock.WithLazyRelease(time.Minute)),
	"writer":              writer(),
	"writer, lazy":        writer(rwlock.WithLazyRelease(time.Minute)),
	"reader":              reader(),
	"reader, lazy":        reader(rwlock.WithLazyRelease(time.Minute)),
	"semaphore":           sem(),
	"semaphore, Curators": sem(semaphore.WithCuratorLayout()),
	"MultiLock":           func(m *session.Manager, path string) (lock, error) { return multi(m, path) },
	"Keyed": func(m *session.Manager, path string) (lock, error) {
		k, err := zklock.NewKeyed(m, path)
		return key{k}, err
	},
	"job": func(m *session.Manager, path string) (lock, error) {
		j, err := schedule.New(m, path)
		return &once{Job: j}, err
	},
}
