package zklock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// Fencing tokens grow from lease to lease, and are the czxids of the nodes.
func TestTokensGrow(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	m := connect(t)
	var last int64
	for range 5 {
		l, err := newMutex(t, m, dir).Acquire(ctx)
		must(t, err)
		token, err := l.Token(ctx)
		must(t, err)
		_, stat, err := testserver.Admin(t).Exists(l.Path())
		must(t, err)
		again, err := l.Token(ctx) // known by now
		must(t, err)
		if token <= last || token != stat.Czxid || again != token {
			t.Errorf("token %d after %d; the node's is %d", token, last, stat.Czxid)
		}
		last = token
		must(t, l.Release(ctx))
	}
}

// The server does a write under the guard while the lock is held, and refuses it afterwards, whatever the
// client believes.
func TestGuard(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	m := connect(t)
	s := testserver.Session(t, m)
	l, err := newMutex(t, m, dir).Acquire(ctx)
	must(t, err)
	write := func(name string) error {
		_, err := s.Multi(ctx, l.Guard(), &zk.CreateRequest{Path: dir + "/" + name})
		return err
	}
	must(t, write("result"))
	testserver.Delete(t, l.Path())
	if err := write("late"); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("a write without the lock: %v", err)
	}
	for _, name := range testserver.Children(t, dir) {
		if name != "result" {
			t.Errorf("%s is there", name)
		}
	}
	receive(t, "the end of the lease", l.Done())
	wantErr(t, "Err", l.Err(), session.ErrLost)
}

// The lock stays held if ctx ends after Lock has returned.
func TestContextBoundsAcquiringOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(patient(t))
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	must(t, mx.Lock(ctx))
	l, err := newMutex(t, connect(t), dir+"-handle").Acquire(ctx)
	must(t, err)
	cancel()
	if !mx.Held() || l.Err() != nil {
		t.Error("lost by a context that ended")
	}
	must(t, mx.Unlock())
	must(t, l.Release(patient(t)))
}

// A call with an ended context sends nothing, even if the lock is free.
func TestEndedContextSendsNothing(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	mx := newMutex(t, testserver.Connect(t, proxy.Addr()), dir)
	ended, cancel := context.WithCancel(patient(t))
	cancel()
	wantErr(t, "Lock", mx.Lock(ended), context.Canceled)
	got, err := mx.TryLock(ended)
	wantErr(t, "TryLock", err, context.Canceled)
	_, acquireErr := mx.Acquire(ended)
	wantErr(t, "Acquire", acquireErr, context.Canceled)
	if got || mx.Held() {
		t.Error("held")
	}
	for _, r := range proxy.Requests() {
		if len(r.Path) >= len(dir) && r.Path[:len(dir)] == dir {
			t.Errorf("sent %v %s", r.Op, r.Path)
		}
	}
}
