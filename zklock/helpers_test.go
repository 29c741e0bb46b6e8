package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var (
	patient = expect.Patient
	must    = expect.NoError
	wantErr = expect.Match
	run     = bubble.Run
)

type world = bubble.World

const lockPath = "/locks/one"

var lazy = zklock.WithLazyRelease(time.Minute)

// connect returns a manager on the shared server. For locks it is another process.
func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...)
}

func newMutex(tb testing.TB, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	tb.Helper()
	mx, err := zklock.New(m, path, opts...)
	must(tb, err)
	return mx
}

func newKeyed(tb testing.TB, m *session.Manager, dir string, opts ...zklock.Option) *zklock.Keyed {
	tb.Helper()
	k, err := zklock.NewKeyed(m, dir, opts...)
	must(tb, err)
	return k
}

func newMulti(tb testing.TB, locks ...zklock.ContextLocker) *zklock.MultiLock {
	tb.Helper()
	m, err := zklock.Multi(locks...)
	must(tb, err)
	return m
}

func newRW(tb testing.TB, m *session.Manager, path string, opts ...rwlock.Option) *rwlock.RWMutex {
	tb.Helper()
	rw, err := rwlock.New(m, path, opts...)
	must(tb, err)
	return rw
}

func newSem(tb testing.TB, m *session.Manager, path string, n int, opts ...semaphore.Option) *semaphore.Semaphore {
	tb.Helper()
	s, err := semaphore.New(m, path, n, opts...)
	must(tb, err)
	return s
}

// locker is a lock of any kind.
type locker interface {
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
}

// oneKey is the lock of one key.
type oneKey struct{ *zklock.Keyed }

func (k oneKey) Lock(ctx context.Context) error            { return k.Keyed.Lock(ctx, "a") }
func (k oneKey) TryLock(ctx context.Context) (bool, error) { return k.Keyed.TryLock(ctx, "a") }
func (k oneKey) Unlock() error                             { return k.Keyed.Unlock("a") }

// ofLocks matches the requests for locks. Heartbeats are pings, and requests at the root.
func ofLocks(r zktest.Request) bool { return len(r.Path) > 1 }

// writes matches requests that change something.
func writes(r zktest.Request) bool {
	return ofLocks(r) && !zktest.Any(zktest.OpSync, zktest.OpGetChildren2, zktest.OpGetData, zktest.OpExists)(r)
}

func nothing(context.Context) error { return nil }

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
