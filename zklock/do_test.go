package zklock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

var errWork = errors.New("the work went wrong")

// Do holds the lock while its function runs, and has unlocked when it returns, in whatever way the function
// ends.
func TestDoUnlocks(t *testing.T) {
	tests := []struct {
		name string
		work func() error
		err  error
		boom any
	}{
		{"success", func() error { return nil }, nil, nil},
		{"error", func() error { return errWork }, errWork, nil},
		{"panic", func() error { panic("boom") }, nil, "boom"},
	}
	m := connect(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := patient(t)
			dir := testserver.Path(t)
			mx := newMutex(t, m, dir)
			var inside context.Context
			var err error
			boom := panicOf(func() {
				err = mx.Do(ctx, func(ctx context.Context) error {
					inside = ctx
					if !mx.Held() || ctx.Err() != nil {
						t.Errorf("inside: held %v, %v", mx.Held(), ctx.Err())
					}
					return tt.work()
				})
			})
			if !errors.Is(err, tt.err) || tt.err == nil && err != nil || boom != tt.boom {
				t.Errorf("Do: error %v, panic %v; want %v, %v", err, boom, tt.err, tt.boom)
			}
			if mx.Held() || len(testserver.Children(t, dir)) != 0 {
				t.Error("held after Do")
			}
			if inside.Err() == nil {
				t.Error("the context inside goes on after Do")
			}
			wantErr(t, "Unlock", mx.Unlock(), zklock.ErrNotHeld)
		})
	}
}

// Do also unlocks if its function ends the goroutine, for example with FailNow of a user's test.
func TestDoGoexit(t *testing.T) {
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	ctx := patient(t)
	ended := make(chan bool)
	go func() {
		inside := false
		defer func() { ended <- inside }()
		_ = mx.Do(ctx, func(context.Context) error {
			inside = true
			runtime.Goexit()
			return nil
		})
	}()
	if !receive(t, "the end of the goroutine", ended) {
		t.Error("Do has not called its function")
	}
	if mx.Held() || len(testserver.Children(t, dir)) != 0 {
		t.Error("held after its goroutine has ended")
	}
}

// When the lock is lost, the function's context ends with the cause. Do returns the loss with the error of
// the function.
func TestDoLost(t *testing.T) {
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr())
	mx := newMutex(t, m, testserver.Path(t))
	for _, own := range []error{nil, errWork} {
		err := mx.Do(patient(t), func(ctx context.Context) error {
			expire(t, proxy, m)
			receive(t, "the end of the context", ctx.Done())
			wantErr(t, "cause", context.Cause(ctx), session.ErrLost)
			return own
		})
		wantErr(t, "Do", err, session.ErrLost)
		if own != nil {
			wantErr(t, "Do", err, own)
		}
	}
}

// The loss of the lock ends the function's context, and the function returns context.Canceled. The error of
// Do must not match that: code that ignores a caller that has gone away would ignore the loss.
func TestDoLostIsNotCancelled(t *testing.T) {
	for kind, newLock := range slottedLocks {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				h := lostHold{server: server, m: connect()}
				lock := newLock(t, h.m).(interface {
					Do(context.Context, func(context.Context) error) error
				})
				for _, own := range []error{nil, errWork} {
					err := lock.Do(t.Context(), func(ctx context.Context) error {
						losses["session"](t, h)
						<-ctx.Done()
						return errors.Join(ctx.Err(), own)
					})
					wantErr(t, "Do", err, session.ErrLost)
					if own != nil {
						wantErr(t, "Do", err, own)
					}
					if errors.Is(err, context.Canceled) {
						t.Errorf("Do: error %v matches context.Canceled", err)
					}
					if strings.Contains(err.Error(), "\n") {
						t.Errorf("Do: error of several lines: %v", err)
					}
				}
			})
		})
	}
}

// If an operator deletes the holder's node, the lock is lost, and the holder is told.
func TestDoNodeDeleted(t *testing.T) {
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	err := mx.Do(patient(t), func(ctx context.Context) error {
		testserver.Delete(t, dir, testserver.Children(t, dir)[0])
		receive(t, "the end of the context", ctx.Done())
		wantErr(t, "cause", context.Cause(ctx), session.ErrLost)
		return nil
	})
	wantErr(t, "Do", err, session.ErrLost)
}

// The end of the caller's context ends the function's context, but not the hold.
func TestDoCancelled(t *testing.T) {
	mx := newMutex(t, connect(t), testserver.Path(t))
	outside, cancel := context.WithCancelCause(patient(t))
	err := mx.Do(outside, func(ctx context.Context) error {
		cancel(errWork)
		receive(t, "the end of the context", ctx.Done())
		wantErr(t, "cause", context.Cause(ctx), errWork)
		if !mx.Held() {
			t.Error("lost by a context that ended")
		}
		return nil
	})
	must(t, err) // the function returned nil all the same
	err = mx.Do(outside, func(context.Context) error {
		t.Error("called after the context has ended")
		return nil
	})
	wantErr(t, "Do", err, context.Canceled)
}

// A stray Unlock, of the function or of another goroutine, does not end a Do.
func TestUnlockInsideDo(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx, rival := newMutex(t, connect(t), dir), newMutex(t, connect(t), dir)
	err := mx.Do(ctx, func(ctx context.Context) error {
		wantErr(t, "Unlock by the function", mx.Unlock(), zklock.ErrNotHeld)
		stray := background(mx.Unlock)
		wantErr(t, "Unlock by another goroutine", receive(t, "Unlock", stray), zklock.ErrNotHeld)
		if !mx.Held() || ctx.Err() != nil {
			t.Error("not held any more inside Do")
		}
		got, err := rival.TryLock(ctx)
		if got {
			t.Error("a rival got in")
		}
		return err
	})
	must(t, err)
	testserver.WaitChildren(t, dir, 0)
}

// An owner that calls Lock within Do gives back that Lock, and not the hold of Do.
func TestUnlockOfLockInsideDo(t *testing.T) {
	ctx := queue.WithOwner(patient(t))
	mx := newMutex(t, connect(t), testserver.Path(t))
	err := mx.Do(ctx, func(ctx context.Context) error {
		must(t, mx.Lock(ctx))
		must(t, mx.Unlock())
		wantErr(t, "Unlock", mx.Unlock(), zklock.ErrNotHeld)
		return ctx.Err()
	})
	must(t, err)
	if mx.Held() {
		t.Error("held after Do")
	}
}
