package zklock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Close of the manager gives up what is held and ends all waits. The nodes are gone when it returns.
func TestManagerClose(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	m := connect(t)
	mx, rival := newMutex(t, m, dir), newMutex(t, connect(t), dir)
	must(t, mx.Lock(ctx))
	waiting := background(func() error { return mx.Lock(ctx) })
	testserver.WaitChildren(t, dir, 2)
	inDo := background(func() error {
		return newMutex(t, m, dir+"-do").Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
	})
	testserver.WaitChildren(t, dir+"-do", 1)
	handle, err := newMutex(t, m, dir+"-handle").Acquire(ctx)
	must(t, err)

	must(t, m.Close())
	if mx.Held() || handle.Err() == nil {
		t.Errorf("after Close: held %v, handle %v", mx.Held(), handle.Err())
	}
	for _, d := range []string{dir, dir + "-do", dir + "-handle"} {
		if n := len(testserver.Children(t, d)); n != 0 {
			t.Errorf("%d nodes in %s after Close", n, d)
		}
	}
	wantErr(t, "Lock that waited", receive(t, "Lock that waited", waiting), session.ErrClosed)
	wantErr(t, "Do", receive(t, "Do", inDo), session.ErrClosed)
	receive(t, "the end of the handle", handle.Done())
	wantErr(t, "Unlock", mx.Unlock(), session.ErrClosed)
	wantErr(t, "Release", handle.Release(ctx), session.ErrClosed)

	wantErr(t, "Lock", mx.Lock(ctx), session.ErrClosed)
	got, err := mx.TryLock(ctx)
	wantErr(t, "TryLock", err, session.ErrClosed)
	_, acquireErr := mx.Acquire(ctx)
	wantErr(t, "Acquire", acquireErr, session.ErrClosed)
	_, listErr := mx.Contenders(ctx)
	wantErr(t, "Contenders", listErr, session.ErrClosed)
	if got || mx.Held() {
		t.Error("held through a closed manager")
	}
	must(t, rival.Lock(ctx))
	must(t, rival.Unlock())
}

// A loss and a close have different errors.
func TestCloseIsNoLoss(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	l, err := newMutex(t, m, testserver.Path(t)).Acquire(ctx)
	must(t, err)
	must(t, m.Close())
	if err := l.Err(); errors.Is(err, session.ErrLost) || errors.Is(err, queue.ErrReleased) {
		t.Errorf("Err after Close: %v", err)
	}
	if _, err := l.Token(ctx); err != nil {
		// The token of a lease that has ended may be known or not.
		wantErr(t, "Token", err, session.ErrClosed)
	}
}
