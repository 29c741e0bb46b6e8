package zklock_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// zk.Lock of go-zookeeper at the same path is the same lock, in either order of arrival.
func TestExcludesZkLock(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	ours := newMutex(t, connect(t), dir)
	theirs := zk.NewLock(testserver.Admin(t), dir, zk.WorldACL(zk.PermAll))

	must(t, ours.Lock(ctx))
	entered := background(theirs.Lock)
	testserver.WaitChildren(t, dir, 2)
	if all, err := ours.Contenders(ctx); err != nil || len(all) != 2 || !all[0].Holder || all[1].Holder {
		t.Errorf("contenders: %+v, %v", all, err)
	}
	pending(t, "zk.Lock beside ours", entered)
	must(t, ours.Unlock())
	must(t, receive(t, "zk.Lock after ours", entered))

	if got, err := ours.TryLock(ctx); got || err != nil {
		t.Errorf("TryLock beside zk.Lock: %v, %v", got, err)
	}
	entered = background(func() error { return ours.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	pending(t, "Lock beside zk.Lock", entered)
	must(t, theirs.Unlock())
	must(t, receive(t, "Lock after zk.Lock", entered))
	must(t, ours.Unlock())
}
