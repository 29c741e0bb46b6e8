package zklock_test

import (
	"path"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// Nodes with WithLeaderLatch have the prefix of Curator's LeaderLatch, and exclude each other in order.
func TestLeaderLatch(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	first := newMutex(t, connect(t), dir, zklock.WithLeaderLatch())
	second := newMutex(t, connect(t), dir, zklock.WithLeaderLatch())
	must(t, first.Lock(ctx))
	locked := background(func() error { return second.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	all, err := first.Contenders(ctx)
	must(t, err)
	for i := range 2 {
		if node := path.Base(all[i].Path); !strings.HasPrefix(node, "_c_") || !strings.Contains(node, "-latch-") {
			t.Errorf("contender %d: %s", i, node)
		}
	}
	pending(t, "Lock of the second", locked)
	must(t, first.Unlock())
	must(t, receive(t, "Lock of the second", locked))
	must(t, second.Unlock())
}

// Curator's LeaderLatch does not count the nodes of its other locks. So the two kinds of mutex refuse each
// other's path, whichever comes first.
func TestLeaderLatchConflict(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	for name, first := range map[string][]zklock.Option{"latch first": {zklock.WithLeaderLatch()}, "lock first": nil} {
		t.Run(name, func(t *testing.T) {
			dir := testserver.Path(t)
			holder := newMutex(t, m, dir, first...)
			must(t, holder.Lock(ctx))
			var others []zklock.Option
			if first == nil {
				others = []zklock.Option{zklock.WithLeaderLatch()}
			}
			other := newMutex(t, m, dir, others...)
			wantErr(t, "Lock", other.Lock(ctx), queue.ErrConflict)
			_, err := other.TryLock(ctx)
			wantErr(t, "TryLock", err, queue.ErrConflict)
			testserver.WaitChildren(t, dir, 1)
			must(t, holder.Unlock())
		})
	}
}
