package main

import (
	"context"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/referee"
	"github.com/turnstile-go/turnstile/queue"
)

// anyKey returns one of the keys that are always in use, or another.
func (w *worker) anyKey() string {
	if w.rng.IntN(2) == 0 {
		return key(w.cycle, w.rng.IntN(contendedKeys))
	}
	return key(w.cycle, w.rng.IntN(allKeys))
}

// key takes the mutex of a key, of which nothing is in memory while nobody of this client uses it.
func (w *worker) key(ctx context.Context, key string) error {
	k := w.c.locks.keyed
	p := referee.Place{Path: k.Path(key), Capacity: 1}
	held := func() bool { return k.Held(key) }
	switch w.rng.IntN(5) {
	case 0:
		return w.lease(ctx, p, 1, "lease of a key", func(ctx context.Context) (*queue.Lease, error) { return k.Acquire(ctx, key) })
	case 1:
		got, err := k.TryLock(ctx, key)
		if err != nil || !got {
			return err
		}
	case 2:
		return k.Do(ctx, key, func(ctx context.Context) error {
			w.during(p, 1, "Do of a key", held, ctx.Done())
			return nil
		})
	default:
		if err := k.Lock(ctx, key); err != nil {
			return err
		}
	}
	w.during(p, 1, "Lock of a key", held, nil)
	return k.Unlock(key)
}

// readWriteKey takes the read-write lock of a key as a reader or a writer.
func (w *worker) readWriteKey(ctx context.Context, key string) error {
	k := w.c.locks.rwKeyed
	p := referee.Place{Path: k.Path(key), Capacity: all}
	what, weight, do, tryDo, get, tryGet := "reader of a key", 1, k.RDo, k.TryRDo, k.RAcquire, k.TryRAcquire
	if w.rng.IntN(3) == 0 {
		what, weight, do, tryDo, get, tryGet = "writer of a key", all, k.Do, k.TryDo, k.Acquire, k.TryAcquire
	}
	work := func(ctx context.Context) error {
		w.during(p, weight, what, func() bool { return ctx.Err() == nil }, ctx.Done())
		return nil
	}
	switch w.rng.IntN(4) {
	case 0:
		return do(ctx, key, work)
	case 1:
		_, err := tryDo(ctx, key, work)
		return err
	case 2:
		get = tryGet
	}
	return w.lease(ctx, p, weight, what, func(ctx context.Context) (*queue.Lease, error) { return get(ctx, key) })
}
