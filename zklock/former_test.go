package zklock_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// States before 0.1.0 had a lock without a queue, whose node has "unfair-" in its name. No lock of any kind is taken while
// such a node is there, and nothing is left behind.
func TestFormerUnfairNodeIsConflict(t *testing.T) {
	m, ctx := connect(t), patient(t)
	locks := map[string]func(dir string) (lock, try func() error){
		"a mutex": func(dir string) (lock, try func() error) { return callsOf(ctx, newMutex(t, m, dir)) },
		"a mutex that is handed over": func(dir string) (lock, try func() error) {
			return callsOf(ctx, newMutex(t, m, dir, zklock.WithLocalHandover(2)))
		},
		"a mutex that is kept": func(dir string) (lock, try func() error) { return callsOf(ctx, newMutex(t, m, dir, lazy)) },
		"a writer":             func(dir string) (lock, try func() error) { return callsOf(ctx, newRW(t, m, dir)) },
		"a reader":             func(dir string) (lock, try func() error) { return callsOf(ctx, newRW(t, m, dir).Reader()) },
		"a semaphore": func(dir string) (lock, try func() error) {
			s, err := semaphore.New(m, dir, 3)
			must(t, err)
			return callsOf(ctx, s)
		},
		"several": func(dir string) (lock, try func() error) {
			return callsOf(ctx, newMulti(t, newMutex(t, m, dir+"-free"), newMutex(t, m, dir)))
		},
		"an election": func(dir string) (lock, try func() error) {
			e, err := election.New(m, dir)
			must(t, err)
			leads := func(context.Context) error { t.Error("it leads"); return nil }
			return func() error { return e.Run(ctx, leads) }, func() error { _, err := e.Leader(ctx); return err }
		},
	}
	for what, calls := range locks {
		t.Run(what, func(t *testing.T) {
			dir := testserver.Path(t)
			lock, try := calls(dir)
			node := dir + "/_c_0b3ea4c1-6f9a-4c4e-9d53-2f1c1c8f6a01-unfair-0000000000"
			for _, p := range []string{dir, node} {
				if _, err := testserver.Admin(t).Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					t.Fatal(err)
				}
			}
			wantErr(t, "the call", lock(), queue.ErrConflict)
			wantErr(t, "the try", try(), queue.ErrConflict)
			testserver.WaitChildren(t, dir, 1)
		})
	}
}

type tries interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) (bool, error)
}

// callsOf returns the calls of a lock that take it.
func callsOf(ctx context.Context, l tries) (lock, try func() error) {
	return func() error { return l.Lock(ctx) }, func() error { _, err := l.TryLock(ctx); return err }
}

func newRW(t *testing.T, m *session.Manager, dir string) *rwlock.RWMutex {
	t.Helper()
	rw, err := rwlock.New(m, dir)
	must(t, err)
	return rw
}
