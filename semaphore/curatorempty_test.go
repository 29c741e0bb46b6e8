package semaphore_test

import (
	"errors"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
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
