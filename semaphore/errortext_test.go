package semaphore_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// Each error reads as one sentence: what was called, on which path, and what went wrong.
func TestErrorTexts(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	dir := testserver.Path(t)
	sem := newSem(t, m, dir, 3)
	curators := newSem(t, m, dir+"/curator", 3, semaphore.WithCuratorLayout())
	newErr := func(m *session.Manager, path string, limit int, opts ...semaphore.Option) error {
		_, err := semaphore.New(m, path, limit, opts...)
		return err
	}
	acquireErr := func(ctx context.Context, s *semaphore.Semaphore, n int) error {
		_, err := s.AcquireN(ctx, n)
		return err
	}
	limitErr := func(ctx context.Context, s *semaphore.Semaphore) error {
		_, err := s.Limit(ctx)
		return err
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	texts := map[string]testserver.ErrorText{
		"bad limit and option": {Err: newErr(m, "/a", 0, nil), Want: "semaphore: invalid argument: 0 leases: want 1 to 2147483647; nil option"},
		"Unlock without Lock":  {Err: sem.Unlock(), Want: "unlock /a: lock is not held"},
		"more than the limit":  {Err: acquireErr(ctx, sem, 4), Want: "acquire /a: invalid argument: 4 leases: the limit is 3"},
		"cancelled Limit":      {Err: limitErr(ended, sem), Want: "limit of /a: context canceled"},
		"cancelled Resize":     {Err: sem.Resize(ended, 4), Want: "resize /a: context canceled"},
		"cancelled ResetLimit": {Err: sem.ResetLimit(ended), Want: "reset the limit of /a: context canceled"},
		"Resize in Curator's":  {Err: curators.Resize(ctx, 4), Want: "resize /a/curator: invalid argument: Curator's layout stores no limit"},
	}

	held, err := sem.Acquire(ctx)
	must(t, err)
	texts["another limit"] = testserver.ErrorText{Err: newSem(t, m, dir, 5).Lock(ctx),
		Want: "acquire /a: another kind of lock, or another configuration, at this path: the limit is 3 leases, not 5"}
	must(t, held.Release(ctx))

	own := newSem(t, m, dir+"/curator", 3)
	must(t, own.Lock(ctx))
	err = curators.Lock(ctx)
	wantErr(t, "Lock in Curator's layout", err, queue.ErrConflict)
	texts["own layout in the way of Curator's"] = testserver.ErrorText{Err: err,
		Want: "acquire /a/curator: another kind of lock, or another configuration, at this path: other contenders do not use Curator's layout"}
	must(t, own.Unlock())

	persistent(t, dir+"/foreign", "data")
	foreign := newSem(t, m, dir+"/foreign", 3)
	texts["foreign data"] = testserver.ErrorText{Err: foreign.Resize(ctx, 4),
		Want: `resize /a/foreign: another kind of lock, or another configuration, at this path: the directory's data "data" is not a semaphore's`}

	must(t, sem.Resize(ctx, 1))
	texts["more than the limit of Resize"] = testserver.ErrorText{Err: acquireErr(ctx, sem, 2),
		Want: "acquire /a: invalid argument: weight 2: the limit is 1"}
	must(t, m.Close())
	texts["closed"] = testserver.ErrorText{Err: sem.Lock(ctx), Want: "acquire /a: session manager closed"}
	testserver.CheckTexts(t, dir, texts)
}
