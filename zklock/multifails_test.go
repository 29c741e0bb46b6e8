package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// An error of one lock ends the acquisition, also if another lock is busy. If a server refuses to remove what has to be
// given up, the call returns that.
func TestMultiFails(t *testing.T) {
	conflict := func(w *world) { w.Make("/b", ""); w.Make("/b/lease-0000000000", "") }
	mayNotDelete := func(w *world) { w.Make("/c", "", zk.PermAll&^zk.PermDelete) }
	for what, c := range map[string]struct {
		prepare func(w *world)
		busy    string // the path of a lock that may be kept: a try enters
		want    error
		left    int // nodes in /c
	}{
		"may not create":                  {func(w *world) { w.Make("/b", "", zk.PermAll&^zk.PermCreate) }, "", zk.ErrNoAuth, 0},
		"another kind":                    {conflict, "", queue.ErrConflict, 0},
		"another kind, and a busy lock":   {conflict, "/a", queue.ErrConflict, 0},
		"may not delete what is given up": {mayNotDelete, "/b", zk.ErrNoAuth, 1},
	} {
		for _, try := range []bool{false, true} {
			run(t, func(w *world) {
				c.prepare(w)
				if c.busy != "" {
					w.Must(newMutex(t, w.Connect(), c.busy, lazy).Lock(w.Context()))
				}
				m := w.Connect()
				all, err := mutexesOf(t, m), error(nil)
				if try {
					_, err = all.TryLock(w.Context())
				} else {
					err = all.Lock(w.Context())
				}
				w.Want(what, err, c.want)
				w.Pass(time.Second)
				for dir, want := range map[string]int{"/a": 0, "/b": 0, "/c": c.left} {
					if dir == c.busy {
						want++
					}
					w.WantNodes(what, dir, want)
				}
				w.Must(m.Close())
				w.WantNodes("after Close", "/c", 0)
			})
		}
	}
	run(t, func(w *world) {
		mayNotDelete(w)
		all := mutexesOf(t, w.Connect())
		w.Must(all.Lock(w.Context()))
		w.Want("Unlock", all.Unlock(), zk.ErrNoAuth)
	})
}

// An owner that holds one of the locks by itself would wait for its own Unlock. All calls fail at once, and send nothing.
func TestMultiOfOneThatItsOwnerHolds(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		mx, rw, first := newMutex(t, m, "/locks/b"), newRW(t, m, "/locks/c"), newMutex(t, m, "/locks/a")
		owner := queue.WithOwner(w.Context())
		for what, c := range map[string]struct {
			held locker
			all  *zklock.MultiLock
		}{
			"a mutex":              {mx, newMulti(t, first, mx)},
			"a writer":             {rw, newMulti(t, first, rw)},
			"a reader":             {rw.Reader(), newMulti(t, first, rw.Reader())},
			"a reader of a writer": {rw, newMulti(t, first, rw.Reader())},
			"a writer of a reader": {rw.Reader(), newMulti(t, first, rw)},
		} {
			w.Must(c.held.Lock(owner))
			w.Pass(time.Second)
			w.ResetRequests()
			w.Want(what+": TryLock", expect.Err(c.all.TryLock(owner)), session.ErrInvalid)
			w.Want(what+": Acquire", expect.Err(c.all.Acquire(owner)), session.ErrInvalid)
			w.Want(what+": TryAcquire", expect.Err(c.all.TryAcquire(owner)), session.ErrInvalid)
			w.Want(what+": Do", c.all.Do(owner, nothing), session.ErrInvalid)
			w.Want(what+": Lock", c.all.Lock(owner), session.ErrInvalid)
			expect.Requests(t, what, w.Server, ofLocks, 0)
			w.Must(c.held.Unlock())
			w.Must(errors.Join(c.all.Lock(owner), c.all.Lock(owner))) // as a whole
			w.Must(errors.Join(c.all.Unlock(), c.all.Unlock()))
		}
		w.Must(mx.Lock(owner))
		w.Lose(m)
		w.Want("Lock beside a lost hold", newMulti(t, first, mx).Lock(owner), session.ErrLost)
	})
}

// A MultiLock that does not get all of its locks keeps the place of none, also if one has WithLazyRelease.
func TestMultiKeepsNothingUnused(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		w.Must(newMutex(t, w.Connect(), "/b", lazy).Lock(w.Context())) // a try takes that for a place that may leave, and enters
		for _, one := range []zklock.ContextLocker{
			newMutex(t, m, "/a", lazy), newRW(t, m, "/a", lazyRW).Reader(), newRW(t, m, "/a", lazyRW),
		} {
			multi := newMulti(t, one, newMutex(t, m, "/b"))
			w.Want("a try", expect.Err(multi.TryAcquire(w.Context())), queue.ErrBusy)
			w.WantNodes("after a try", "/a", 0)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			w.Want("Lock", multi.Lock(ctx), context.DeadlineExceeded)
			cancel()
			w.WantNodes("after Lock", "/a", 0)
			w.WantNodes("after Lock", "/b", 1)
		}
	})
}

// A MultiLock comes to a lock of which this process has the last hold of a turn. The delete of that turn's node makes room for
// the next one, as it does for a Lock of that mutex alone.
func TestMultiBehindTurnAtLimit(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect(session.WithNodeLimits(2, 1<<20))
		shared := newMutex(t, m, "/b", zklock.WithLocalHandover(1))
		w.Must(shared.Lock(w.Context()))
		next := w.Go(func() error { return shared.Lock(w.Context()) })
		w.Must(shared.Unlock())
		w.Must(next.Err())
		both := newMulti(t, shared, newMutex(t, m, "/a"))
		locking := w.Go(func() error { return both.Lock(w.Context()) })
		w.Must(shared.Unlock())
		w.Must(locking.Err())
		synctest.Wait()
	})
}
