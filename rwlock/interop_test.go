package rwlock_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zklock"
)

// The nodes of Curator and of kazoo count as readers or writers. Other children do not count.
func TestForeignNodes(t *testing.T) {
	for _, tt := range []struct {
		name, prefix string
		letter       string
		blocksRead   bool
		blocksWrite  bool
	}{
		{"Curator's reader", curator(queue.PrefixRead), "R*", false, true},
		{"Curator's writer", curator(queue.PrefixWrite), "W*", true, true},
		{"Curator's reader, unprotected", queue.PrefixRead, "R*", false, true},
		{"Curator's writer, unprotected", queue.PrefixWrite, "W*", true, true},
		{"kazoo's reader", kazoo(queue.PrefixKazooRead), "r*", false, true},
		{"kazoo's writer", kazoo(queue.PrefixKazooLock), "w*", true, true},
		{"no contender", "readme-", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := persistentDir(t)
			rw := newLock(t, connect(t), dir)
			theirs := forge(t, dir, tt.prefix)
			wantPicture(t, rw, tt.letter)
			for _, c := range []struct {
				kind   string
				blocks bool
			}{{"W", tt.blocksWrite}, {"R", tt.blocksRead}} {
				var l *queue.Lease
				ctx := patient(t)
				entered := background(func() (err error) {
					l, err = acquire(rw, c.kind)(ctx)
					return err
				})
				testserver.WaitChildren(t, dir, 2)
				if c.blocks {
					wantPicture(t, rw, tt.letter+" "+c.kind)
					pending(t, c.kind, entered)
					theirs.delete()
				}
				must(t, receive(t, c.kind, entered))
				if c.blocks {
					// As far as this package can tell, their node waits behind this one too.
					theirs = forge(t, dir, tt.prefix)
				}
				must(t, l.Release(patient(t)))
				wantPicture(t, rw, tt.letter)
			}
			theirs.delete()
		})
	}
}

// A mutex and a read-write lock at one path are a conflict. Both get the error, and leave nothing behind.
func TestConflict(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	rw := newLock(t, connect(t), dir)
	mx, err := zklock.New(connect(t), dir)
	must(t, err)
	try := func(f func(context.Context) (bool, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := f(ctx)
			if got {
				t.Error("true beside an error")
			}
			return err
		}
	}
	contenders := func(f func(context.Context) ([]queue.Contender, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := f(ctx)
			return err
		}
	}
	must(t, mx.Lock(ctx))
	for name, f := range map[string]func(context.Context) error{
		"Lock": rw.Lock, "RLock": rw.RLock, "TryLock": try(rw.TryLock), "TryRLock": try(rw.TryRLock),
		"Contenders": contenders(rw.Contenders),
	} {
		wantErr(t, name, f(ctx), queue.ErrConflict)
	}
	testserver.WaitChildren(t, dir, 1)
	must(t, mx.Unlock())

	must(t, rw.RLock(ctx))
	for name, f := range map[string]func(context.Context) error{
		"Mutex.Lock": mx.Lock, "Mutex.TryLock": try(mx.TryLock), "Mutex.Contenders": contenders(mx.Contenders),
	} {
		wantErr(t, name, f(ctx), queue.ErrConflict)
	}
	testserver.WaitChildren(t, dir, 1)
	must(t, rw.RUnlock())
	must(t, mx.Lock(ctx))
	must(t, mx.Unlock())
}
