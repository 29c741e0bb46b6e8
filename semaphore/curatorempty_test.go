package semaphore_test

import (
	"context"
	"errors"
	"path"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// Servers remove the directory of the gate when it is empty, while leases are held.
func TestCuratorContendersWithoutGate(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	s := newSem(t, connect(t), dir, 2, semaphore.WithCuratorLayout())
	l, err := s.Acquire(ctx)
	must(t, err)
	if err := testserver.Admin(t).Delete(path.Join(dir, "locks"), -1); !errors.Is(err, zk.ErrNoNode) {
		must(t, err)
	}
	if all, err := s.Contenders(ctx); err != nil || len(all) != 1 || !all[0].Holder {
		t.Errorf("%+v, %v: want the holder", all, err)
	}
	must(t, l.Release(ctx))
}

// Somebody deletes the whole tree when Acquire looks for contenders of the other layout. That is no
// error of Acquire: the lease is soon lost, or there is another attempt.
func TestCuratorTreeDeleted(t *testing.T) {
	dir := testserver.Path(t)
	var once sync.Once
	m := connect(t, session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "getChildren" && r.Path == dir {
				once.Do(func() { deleteTree(t, dir) })
			}
			return ctx, nil
		},
	}))
	l, err := newSem(t, m, dir, 2, semaphore.WithCuratorLayout()).Acquire(patient(t))
	must(t, err)
	_ = l.Release(patient(t)) // it may be lost
}

// deleteTree deletes a directory and what is below it.
func deleteTree(t *testing.T, dir string) {
	names, _, err := testserver.Admin(t).Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return
	}
	must(t, err)
	for _, name := range names {
		deleteTree(t, path.Join(dir, name))
	}
	if err := testserver.Admin(t).Delete(dir, -1); !errors.Is(err, zk.ErrNoNode) {
		must(t, err)
	}
}
