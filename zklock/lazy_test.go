package zklock_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

var lazy = zklock.WithLazyRelease(time.Minute)

// Unlock keeps the place, and the mutex is not held. The next Lock, and another process, get it.
func TestLazy(t *testing.T) {
	dir := testserver.Path(t)
	mx, other := newMutex(t, connect(t), dir, lazy), newMutex(t, connect(t), dir)
	ctx := patient(t)
	for range 3 {
		must(t, mx.Lock(ctx))
		if !mx.Held() {
			t.Error("not held")
		}
		must(t, mx.Unlock())
		if mx.Held() {
			t.Error("held while the place is only kept")
		}
		testserver.WaitChildren(t, dir, 1)
	}
	must(t, other.Lock(ctx))
	must(t, other.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// Goroutines of several processes take turns: with and without hand-overs, nobody is inside with another.
func TestLazyExclusion(t *testing.T) {
	for _, opts := range [][]zklock.Option{{lazy}, {lazy, zklock.WithLocalHandover(2)}, {zklock.WithLazyRelease(time.Millisecond)}} {
		dir := testserver.Path(t)
		ctx := patient(t)
		inside := make(chan struct{}, 1)
		var all []<-chan error
		for range 3 {
			mx := newMutex(t, connect(t), dir, opts...)
			for range 3 {
				all = append(all, background(func() error {
					for range 10 {
						if err := mx.Lock(ctx); err != nil {
							return err
						}
						select {
						case inside <- struct{}{}:
						default:
							t.Error("two inside")
						}
						<-inside
						if err := mx.Unlock(); err != nil {
							return err
						}
					}
					return nil
				}))
			}
		}
		for _, done := range all {
			must(t, receive(t, "a goroutine", done))
		}
	}
}

// A Multi that takes another Mutex at the path gets what this process keeps.
func TestLazyMulti(t *testing.T) {
	dir := testserver.Path(t)
	m := connect(t)
	mx, again := newMutex(t, m, dir, lazy), newMutex(t, m, dir, lazy)
	beside := newMutex(t, m, dir+"-beside", lazy)
	ctx := patient(t)
	multi, err := zklock.Multi(again, beside)
	must(t, err)
	for range 3 {
		must(t, mx.Lock(ctx))
		must(t, mx.Unlock())
		must(t, multi.Lock(ctx))
		must(t, multi.Unlock())
	}
}

func TestLazyInput(t *testing.T) {
	m := connect(t)
	for _, opts := range [][]zklock.Option{
		{zklock.WithLazyRelease(0)}, {zklock.WithLazyRelease(-time.Second)}, {zklock.WithLazyRelease(time.Minute + 1)},
	} {
		_, err := zklock.New(m, "/x", opts...)
		expect.Match(t, "New", err, session.ErrInvalid)
	}
}
