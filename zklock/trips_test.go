package zklock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const roundTrip = 20 * time.Millisecond

var async = zklock.WithAsyncRelease()

// A lock that is free takes one round trip, and so do several that are taken together, also right after their Unlock. The
// Unlock takes one more, or none with WithAsyncRelease. The lease of Acquire waits all the same, and so does a MultiLock
// unless all of its locks have the option.
func TestRoundTrips(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		mutex := func(name string, opts ...zklock.Option) *zklock.Mutex { return newMutex(t, m, "/locks/"+name, opts...) }
		var ten []zklock.ContextLocker
		for i := range 10 {
			ten = append(ten, mutex(fmt.Sprint("many/", i)))
		}
		quick := mutex("async", async)
		curators := newSem(t, m, "/locks/curator", 1, semaphore.WithCuratorLayout(), semaphore.WithAsyncRelease())
		ctx := w.Context()
		var lease *queue.Lease
		type calls = struct{ Lock, Unlock func() error }
		leased := func(acquire func(context.Context) (*queue.Lease, error)) calls {
			return calls{
				func() (err error) { lease, err = acquire(ctx); return err },
				func() error { return lease.Release(ctx) },
			}
		}
		of := func(l locker) calls { return calls{func() error { return l.Lock(ctx) }, l.Unlock} }
		for what, c := range map[string]struct {
			calls
			lock, unlock int
		}{
			"one":               {of(mutex("one")), 1, 1},
			"two":               {of(newMulti(t, ten[0], ten[1])), 1, 1},
			"ten":               {of(newMulti(t, ten...)), 1, 1},
			"a key":             {of(oneKey{newKeyed(t, m, "/keys")}), 1, 1},
			"async":             {of(quick), 1, 0},
			"two, async":        {of(newMulti(t, quick, mutex("async2", async))), 1, 0},
			"two, one waits":    {of(newMulti(t, quick, mutex("waits"))), 1, 1},
			"async, Curator's":  {of(newMulti(t, quick, curators)), 4, 0},
			"Do, async":         {calls{func() error { return quick.Do(ctx, nothing) }, func() error { return nil }}, 1, 0},
			"Locker, async":     {calls{func() error { quick.Locker(nil).Lock(); return nil }, quick.Unlock}, 1, 0},
			"Acquire, async":    {leased(quick.Acquire), 1, 1},
			"TryAcquire, async": {leased(quick.TryAcquire), 2, 1},
		} {
			w.Must(c.Lock()) // makes the directories
			w.Must(c.Unlock())
			w.Pass(time.Second)
			w.Delay(roundTrip / 2)
			for range 3 {
				lock := bubble.Took(func() { w.Must(c.Lock()) })
				unlock := bubble.Took(func() { w.Must(c.Unlock()) })
				if lock != time.Duration(c.lock)*roundTrip || unlock != time.Duration(c.unlock)*roundTrip {
					t.Errorf("%s: %v and %v, want %d round trips and %d", what, lock, unlock, c.lock, c.unlock)
				}
			}
			w.Delay(0)
			w.Pass(time.Second)
		}
	})
}

// When Close has returned nil, the lock is free, whatever was under way. Without a server it says that it does not know. The
// Release hook is told once of what Close itself releases: that counts as pending.
func TestAsyncClose(t *testing.T) {
	for _, away := range []bool{false, true} {
		run(t, func(w *world) {
			told := make(chan error, 2)
			m, other := w.Connect(session.WithTrace(session.Trace{
				Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
					return ctx, func(err error) { told <- err }
				},
			})), newMutex(t, w.Connect(), lockPath)
			mx := newMutex(t, m, lockPath, async)
			w.Must(mx.Lock(w.Context()))
			w.Delay(10 * time.Millisecond)
			if away {
				w.Cut()
			}
			w.Must(mx.Unlock())
			if err := m.Close(); (err != nil) != away {
				t.Errorf("Close without servers %v: %v", away, err)
			}
			synctest.Wait()
			w.Want("the release", bubble.Receive(w, "the end of the release", told), queue.ErrReleasePending)
			if len(told) > 0 {
				t.Errorf("told again: %v", <-told)
			}
			if !away {
				w.WantNodes("after Close", lockPath, 0)
			}
			w.Refuse(false)
			w.Heal()
			// As after the end of a program without Close, the session's timeout frees the lock.
			if d := bubble.Took(func() { w.Must(other.Lock(w.Context())) }); d > 2*bubble.Timeout {
				t.Errorf("the lock was free after %v", d)
			}
		})
	}
}

// A call that has little time gets its lock in the end if it is repeated: what one has made serves the next.
func TestShortCallsGetOn(t *testing.T) {
	run(t, func(w *world) {
		mx := newMutex(t, w.Connect(), "/lock")
		w.Delay(roundTrip / 2)
		for range 5 {
			ctx, cancel := context.WithTimeout(w.Context(), roundTrip*5/4)
			defer cancel()
			if mx.Lock(ctx) == nil {
				w.Must(mx.Unlock())
				return
			}
			w.Pass(time.Second)
		}
		t.Error("no lock")
	})
}

// A call that is cancelled while it makes its directories leaves none that servers keep: before 3.10 they remove only
// containers that have had a child.
func TestCancelledCallsLeaveNoDirectory(t *testing.T) {
	for what, newLock := range map[string]func(m *session.Manager) locker{
		"mutex": func(m *session.Manager) locker { return newMutex(t, m, "/a/b/lock") },
		"multi": func(m *session.Manager) locker {
			return newMulti(t, newMutex(t, m, "/a/b/first"), newMutex(t, m, "/a/c/second"))
		},
	} {
		run(t, func(w *world) {
			lock, witness := newLock(w.Connect()), w.Admin()
			w.Delay(time.Millisecond)
			for patience := time.Duration(0); ; patience += time.Millisecond / 4 {
				ctx, cancel := context.WithTimeout(w.Context(), patience)
				err := lock.Lock(ctx)
				cancel()
				if err == nil {
					w.Must(lock.Unlock())
				}
				w.Pass(12 * time.Second) // more than a session timeout
				w.ReapContainers()
				if children, _, left := witness.Children(w.Context(), "/a"); left == nil {
					t.Errorf("%s, cancelled after %v: /a is there, with %v", what, patience, children)
				}
				if err == nil {
					return
				}
			}
		})
	}
}
