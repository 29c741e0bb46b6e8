package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// The two layouts at one path exclude each other. The call that comes second gets a conflict, and leaves nothing behind.
func TestTwoLayouts(t *testing.T) {
	ctx := patient(t)
	t.Run("Curator's second", func(t *testing.T) {
		dir := testserver.Path(t)
		directories(t, dir)
		l := take(t, newSem(t, connect(t), dir, 2), 1)
		s := curators(t, dir, 2)
		_, err := s.Acquire(ctx)
		wantErr(t, "Acquire", err, queue.ErrConflict)
		_, err = s.TryAcquire(ctx)
		wantErr(t, "TryAcquire", err, queue.ErrConflict)
		nodes(t, dir, 0, 0)
		must(t, l.Err())
		release(t, l)
		release(t, take(t, s, 1))
	})
	t.Run("Curator's first", func(t *testing.T) {
		dir := testserver.Path(t)
		directories(t, dir)
		l := take(t, curators(t, dir, 2), 1)
		s := newSem(t, connect(t), dir, 2)
		_, err := s.Acquire(ctx)
		wantErr(t, "Acquire", err, queue.ErrConflict)
		_, err = s.TryAcquire(ctx)
		wantErr(t, "TryAcquire", err, queue.ErrConflict)
		testserver.WaitChildren(t, dir, 2)
		must(t, l.Err())
		release(t, l)
		release(t, take(t, s, 1)) // the directories alone are no conflict
	})
}
