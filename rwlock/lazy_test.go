package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var lazy = rwlock.WithLazyRelease(time.Minute)

// Readers of a process share one place, which they use again and again without a request. Readers of other
// processes may come and go.
func TestLazyReaders(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw, other := newLock(t, m, dir, lazy), newLock(t, connect(t), dir)
	ctx := patient(t)
	read := func() {
		t.Helper()
		must(t, rw.RLock(ctx))
		must(t, rw.RLock(ctx))
		wantTry(t, "beside two readers", rw.TryRLock, ctx, true)
		for range 3 {
			must(t, rw.RUnlock())
		}
	}
	first, err := rw.Reader().Acquire(ctx)
	must(t, err)
	_, err = first.Token(ctx) // its node is watched from now on, which takes a request
	must(t, err)
	must(t, first.Release(ctx))
	proxy.ResetRequests()
	for range 20 {
		read()
	}
	if n := proxy.Count(inDir(dir)); n != 0 {
		t.Errorf("%d requests", n)
	}
	if rw.Reader().Held() {
		t.Error("held")
	}
	must(t, other.RLock(ctx))
	zktest.Eventually(t, testserver.Patience, "the readers to look", func() bool { return proxy.Count(listing(dir)) > 0 })
	zktest.Eventually(t, testserver.Patience, "reading without a request", func() bool {
		proxy.ResetRequests()
		read()
		return proxy.Count(inDir(dir)) == 0
	})
	testserver.WaitChildren(t, dir, 2)
	must(t, other.RUnlock())
	testserver.WaitChildren(t, dir, 1)
}

// A reader does not join the others of its process while a writer waits, which the others keep waiting.
func TestLazyReaderBehindWriter(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw, writer := newLock(t, m, dir, lazy), newLock(t, connect(t), dir)
	ctx := patient(t)
	must(t, rw.RLock(ctx))
	proxy.ResetRequests()
	written := queued(t, dir, 2, writer.Lock)
	zktest.Eventually(t, testserver.Patience, "the readers to look", func() bool { return proxy.Count(listing(dir)) > 0 })
	reads := queued(t, dir, 3, rw.RLock)
	wantTry(t, "while a writer waits", rw.TryRLock, ctx, false)
	pending(t, "the second reader", reads)
	pending(t, "the writer", written)
	must(t, rw.RUnlock())
	must(t, receive(t, "the writer", written))
	pending(t, "the second reader", reads)
	must(t, writer.Unlock())
	must(t, receive(t, "the second reader", reads))
	must(t, rw.RUnlock())
}

// A writer gets the lock from readers, of its process or another, that only keep their place, and readers
// from writers.
func TestLazyOtherSide(t *testing.T) {
	dir := persistentDir(t)
	one, two := newLock(t, connect(t), dir, lazy), newLock(t, connect(t), dir, lazy)
	ctx := patient(t)
	for range 3 {
		for _, rw := range []*rwlock.RWMutex{one, two} {
			must(t, rw.RLock(ctx))
			must(t, rw.RUnlock())
			must(t, rw.Lock(ctx))
			must(t, rw.Unlock())
		}
		for _, rw := range []*rwlock.RWMutex{one, two} {
			must(t, rw.Lock(ctx))
			must(t, rw.Unlock())
		}
		for _, rw := range []*rwlock.RWMutex{one, two} {
			must(t, rw.RLock(ctx))
		}
		for _, rw := range []*rwlock.RWMutex{one, two} {
			must(t, rw.RUnlock())
		}
	}
	must(t, one.Manager().Close())
	must(t, two.Manager().Close())
	testserver.WaitChildren(t, dir, 0)
}

// A session that has room for one node has it for the other side as soon as the place that is kept is gone.
func TestLazyOtherSideAtLimit(t *testing.T) {
	dir := persistentDir(t)
	rw := newLock(t, connect(t, session.WithNodeLimits(1, 1<<20)), dir, lazy)
	ctx := patient(t)
	for range 3 {
		must(t, rw.RLock(ctx))
		must(t, rw.RUnlock())
		must(t, rw.Lock(ctx))
		must(t, rw.Unlock())
	}
}

// Nothing is kept after a downgrade.
func TestLazyDowngrade(t *testing.T) {
	dir := persistentDir(t)
	rw := newLock(t, connect(t), dir, lazy)
	owner := queue.WithOwner(patient(t))
	must(t, rw.Lock(owner))
	must(t, rw.RLock(owner))
	must(t, rw.Unlock())
	must(t, rw.RUnlock())
	testserver.WaitChildren(t, dir, 0)
}

// Readers that wait for the same writer share one node, and go on one by one if they are cancelled.
func TestLazyReadersWaitTogether(t *testing.T) {
	dir := persistentDir(t)
	m, _ := proxied(t)
	rw, writer := newLock(t, m, dir, lazy), newLock(t, connect(t), dir)
	ctx := patient(t)
	must(t, writer.Lock(ctx))
	first := queued(t, dir, 2, rw.RLock)
	short, cancel := context.WithCancel(ctx)
	second := background(func() error { return rw.RLock(short) })
	third := background(func() error { return rw.RLock(ctx) })
	cancel()
	wantErr(t, "the second", receive(t, "the second", second), context.Canceled)
	must(t, writer.Unlock())
	must(t, receive(t, "the first", first))
	must(t, receive(t, "the third", third))
	must(t, rw.RUnlock())
	must(t, rw.RUnlock())
	must(t, writer.Lock(ctx))
	must(t, writer.Unlock())
	testserver.WaitChildren(t, dir, 0)
}

// All readers of a place are lost with their session, and read again in the next one.
func TestLazyReadersLost(t *testing.T) {
	dir := persistentDir(t)
	m, proxy := proxied(t)
	rw := newLock(t, m, dir, lazy)
	ctx := patient(t)
	a, err := rw.Reader().Acquire(ctx)
	must(t, err)
	b, err := rw.Reader().Acquire(ctx)
	must(t, err)
	expire(t, proxy, m)
	<-a.Done()
	<-b.Done()
	wantErr(t, "one", a.Err(), session.ErrLost)
	wantErr(t, "the other", b.Release(ctx), session.ErrLost)
	must(t, rw.RLock(ctx))
	must(t, rw.RUnlock())
}

func TestLazyBadTime(t *testing.T) {
	m := connect(t)
	for _, d := range []time.Duration{0, -1, time.Minute + 1} {
		_, err := rwlock.New(m, "/x", rwlock.WithLazyRelease(d))
		wantErr(t, d.String(), err, session.ErrInvalid)
	}
}
