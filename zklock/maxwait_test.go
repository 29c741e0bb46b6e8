package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
)

// Every call that waits for a lock fails with ErrMaxWait, which is no end of its context, says who is ahead, and leaves
// nothing.
func TestMaxWait(t *testing.T) {
	ctx := queue.WithMaxWait(patient(t), 50*time.Millisecond)
	dir := testserver.Path(t)
	theirs, ours := connect(t), connect(t)
	must(t, newMutex(t, theirs, dir+"/m").Lock(queue.WithLabel(patient(t), "request 42")))
	held, err := rwlock.New(theirs, dir+"/rw")
	must(t, err)
	must(t, held.Lock(patient(t)))
	all, err := semaphore.New(theirs, dir+"/s", 1)
	must(t, err)
	must(t, all.Lock(patient(t)))
	curators, err := semaphore.New(theirs, dir+"/c", 1, semaphore.WithCuratorLayout())
	must(t, err)
	must(t, curators.Lock(patient(t)))

	m, local := newMutex(t, ours, dir+"/m"), newMutex(t, ours, dir+"/m", zklock.WithLocalHandover(3))
	rw, err := rwlock.New(ours, dir+"/rw")
	must(t, err)
	s, err := semaphore.New(ours, dir+"/s", 1)
	must(t, err)
	c, err := semaphore.New(ours, dir+"/c", 1, semaphore.WithCuratorLayout())
	must(t, err)
	multi := newMulti(t, newMutex(t, ours, dir+"/free"), m)
	never := func(context.Context) error { t.Error("called"); return nil }
	for what, call := range map[string]func() error{
		"Lock":              func() error { return m.Lock(ctx) },
		"Do":                func() error { return m.Do(ctx, never) },
		"Acquire":           func() error { _, err := m.Acquire(ctx); return err },
		"Lock of a Local":   func() error { return local.Lock(ctx) },
		"Acquire of Local":  func() error { _, err := local.Acquire(ctx); return err },
		"a writer":          func() error { return rw.Lock(ctx) },
		"a reader":          func() error { return rw.Reader().Do(ctx, never) },
		"a semaphore":       func() error { return s.Lock(ctx) },
		"Curator's layout":  func() error { return c.Do(ctx, never) },
		"a MultiLock":       func() error { return multi.Lock(ctx) },
		"Acquire of a Mult": func() error { _, err := multi.Acquire(ctx); return err },
	} {
		err := call()
		var wait *queue.WaitError
		if !errors.Is(err, queue.ErrMaxWait) || errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &wait) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if !strings.Contains(err.Error(), wait.Reason) || wait.Connection != nil {
			t.Errorf("%s: %v, because of %+v", what, err, wait)
		}
	}
	for _, lock := range []string{"/m", "/rw", "/s", "/c/leases"} {
		testserver.WaitChildren(t, dir+lock, 1)
	}
	testserver.WaitChildren(t, dir+"/free", 0)

	var wait *queue.WaitError
	err = m.Lock(queue.WithMaxWait(patient(t), time.Second)) // the servers have told by then who holds
	if !errors.As(err, &wait) || !wait.Ahead.Holder || wait.Ahead.Label != "request 42" || wait.Ahead.Own {
		t.Errorf("%v: %+v", err, wait)
	}
	if err := m.Lock(queue.WithMaxWait(patient(t), 0)); !errors.Is(err, queue.ErrMaxWait) {
		t.Errorf("no wait at all: %v", err)
	}
}

// TryDo calls its function if the lock is free, and only then.
func TestTryDo(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	theirs, ours := connect(t), connect(t)
	holder := newMutex(t, theirs, dir+"/m")
	m := newMutex(t, ours, dir+"/m")
	multi := newMulti(t, m, newMutex(t, ours, dir+"/other"))
	rw, err := rwlock.New(ours, dir+"/rw")
	must(t, err)
	theirRW, err := rwlock.New(theirs, dir+"/rw")
	must(t, err)
	s, err := semaphore.New(ours, dir+"/s", 1)
	must(t, err)
	theirS, err := semaphore.New(theirs, dir+"/s", 1)
	must(t, err)
	why := errors.New("why")
	for what, c := range map[string]struct {
		try          func(context.Context, func(context.Context) error) (bool, error)
		lock, unlock func() error
	}{
		"a mutex":     {m.TryDo, func() error { return holder.Lock(ctx) }, holder.Unlock},
		"a MultiLock": {multi.TryDo, func() error { return holder.Lock(ctx) }, holder.Unlock},
		"a writer":    {rw.TryDo, func() error { return theirRW.Lock(ctx) }, theirRW.Unlock},
		"a reader":    {rw.Reader().TryDo, func() error { return theirRW.Lock(ctx) }, theirRW.Unlock},
		"a semaphore": {s.TryDo, func() error { return theirS.Lock(ctx) }, theirS.Unlock},
	} {
		must(t, c.lock())
		if ran, err := c.try(ctx, func(context.Context) error { t.Errorf("%s: called", what); return nil }); ran || err != nil {
			t.Errorf("%s is busy: %v, %v", what, ran, err)
		}
		must(t, c.unlock())
		ran, err := c.try(ctx, func(ctx context.Context) error {
			if ctx.Err() != nil {
				t.Errorf("%s: %v", what, ctx.Err())
			}
			return why
		})
		if !ran || !errors.Is(err, why) {
			t.Errorf("%s is free: %v, %v", what, ran, err)
		}
		if ran, err := c.try(ctx, func(context.Context) error { return nil }); !ran || err != nil {
			t.Errorf("%s was not given back: %v, %v", what, ran, err)
		}
		if ran, err := c.try(ctx, nil); ran || err == nil {
			t.Errorf("%s: no function: %v, %v", what, ran, err)
		}
	}
}
