package cli

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zktest"
)

// Watch tells of a request to give the lock up that comes between its look and its watch.
func TestWatchAskedBeforeWatch(t *testing.T) {
	srv := zktest.Start(t)
	w := newWorld(t, srv.Addr(), "/test")
	w.own(t, firstHolder, dataA)
	p := w.top + "/" + firstHolder
	held := srv.HoldRequest(w.nth(2, zktest.On(zktest.OpGetData, p))) // 1: the look; 2: the watch
	r := w.begin(t, "", "watch", "--interval", "1h", w.top+"/l")
	<-held.Hit()
	if _, err := w.admin.Set(p, []byte("__REVOKE__"), -1); err != nil {
		t.Fatal(err)
	}
	held.Release()
	r.prints(t, "somebody asks it to give the lock up")
}

// Watch tells of a limit that is set between its look and its watch, and of the waiter that gets a lease by it.
func TestWatchLimitBeforeWatch(t *testing.T) {
	srv := zktest.Start(t)
	w := newWorld(t, srv.Addr(), "/test")
	dir := w.top + "/pool"
	s, err := semaphore.New(w.manager(t), dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Release(context.WithoutCancel(t.Context())) }()
	// The data of the directory has to say the limit before: a resize to another kind of data would be told.
	w.call(t.Context(), "resize", dir, "1").want(t, 0)
	w.own(t, "pool/"+uuidB+"lease-0000000009", dataB)
	holder := l.Path()
	// The watch on the directory is set after the look, which reads the holder.
	var read atomic.Bool
	held := srv.HoldRequest(w.nth(1, func(r zktest.Request) bool {
		if r.Op == zktest.OpGetData && r.Path == holder {
			read.Store(true)
		}
		return read.Load() && r.Op == zktest.OpGetData && r.Path == dir
	}))
	r := w.begin(t, "", "watch", "--interval", "1h", dir)
	<-held.Hit()
	if err := s.Resize(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	held.Release()
	r.prints(t, "granted   web-4/17", "holds     web-4/17") // holds: the request that was held back was the look's
}

// A request that comes when a watch has ended and is not set anew yet is told.
func TestWatchAskedBetweenWatches(t *testing.T) {
	srv := zktest.Start(t)
	w := newWorld(t, srv.Addr(), "/test")
	w.own(t, firstHolder, dataA)
	p := w.top + "/" + firstHolder
	ofNode := zktest.On(zktest.OpGetData, p)
	set := srv.HoldReply(w.nth(2, ofNode))
	held := srv.HoldRequest(w.nth(4, ofNode)) // a look and a watch, and both again
	r := w.begin(t, "", "watch", "--interval", "1h", w.top+"/l")
	<-set.Hit()
	set.Release()
	if _, err := w.admin.Set(p, []byte(dataB), -1); err != nil {
		t.Fatal(err)
	}
	<-held.Hit()
	if _, err := w.admin.Set(p, []byte("__REVOKE__"), -1); err != nil {
		t.Fatal(err)
	}
	held.Release()
	r.prints(t, "somebody asks it to give the lock up")
}
