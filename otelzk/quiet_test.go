package otelzk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

type opener func(*session.Manager) (zklock.ContextLocker, error)

// Hooks change nothing of what a session sends: not those of otelzk and lockz, and not hooks for everything.
func TestHooksChangeNoRequest(t *testing.T) {
	writer := func(m *session.Manager) (zklock.ContextLocker, error) { return rwlock.New(m, lockPath) }
	mutex := func(opts ...zklock.Option) opener {
		return func(m *session.Manager) (zklock.ContextLocker, error) { return zklock.New(m, lockPath, opts...) }
	}
	for kind, locks := range map[string][2]opener{ // ours, and that of the rival
		"mutex":     {mutex(), mutex()},
		"handover":  {mutex(zklock.WithLocalHandover(2)), mutex()},
		"kept":      {mutex(zklock.WithLazyRelease(time.Second)), mutex()},
		"writer":    {writer, writer},
		"semaphore": {func(m *session.Manager) (zklock.ContextLocker, error) { return semaphore.New(m, lockPath, 1) }, nil},
		"reader": {func(m *session.Manager) (zklock.ContextLocker, error) {
			rw, err := rwlock.New(m, lockPath)
			return rw.Reader(), err
		}, writer},
	} {
		t.Run(kind, func(t *testing.T) {
			if locks[1] == nil {
				locks[1] = locks[0]
			}
			without := sent(t, locks[0], locks[1], session.Trace{}, false)
			for what, hooks := range map[string]session.Trace{
				"all hooks": everyHook(), "otelzk and lockz": otelzk.New(newTelemetry().opts...),
			} {
				if diff := cmp.Diff(without, sent(t, locks[0], locks[1], hooks, true)); diff != "" {
					t.Errorf("with %s (+) it sends other requests than without (-):\n%s", what, diff)
				}
			}
		})
	}
}

// everyHook has each hook of a Trace, and looks at what it is told.
func everyHook() session.Trace {
	return testserver.EveryHook(func(_ string, arg any) {
		if w, ok := arg.(session.WatchInfo); ok {
			w.Known()
		}
	})
}

// sent returns the requests of a session that takes a lock, waits for it, tries it in vain, and loses its session while it
// holds. Those of one moment come in any order, and heartbeats at times of their own.
func sent(t *testing.T, open, block opener, hooks session.Trace, page bool) (all []string) {
	inBubble(t, func(t *world) {
		theirs, ours := t.connect("", session.Trace{}), t.connect("", hooks)
		rival, err := block(theirs)
		must(t, err)
		if page {
			lockz.Handler(ours)
		}
		lock, err := open(ours)
		must(t, err)
		t.server.ResetRequests()

		use(t, lock)
		pass(2 * time.Second)
		held, err := rival.Acquire(t.Context())
		must(t, err)
		_, err = lock.TryAcquire(t.Context())
		wantErr(t, "TryAcquire", err, queue.ErrBusy)
		pass(soon)
		var lease *queue.Lease
		granted := begin(func() (err error) {
			lease, err = lock.Acquire(t.Context())
			return err
		})
		pass(soon)
		must(t, held.Release(t.Context()))
		must(t, <-granted)
		pass(soon)
		must(t, t.server.Expire(t.Context(), testserver.Session(t, ours).ID()))
		<-lease.Done()
		pass(soon)
		for _, r := range t.server.Requests() {
			switch r.Op {
			case zktest.OpPing, zktest.OpSync, zktest.OpMulti, zktest.OpConnect, zktest.OpClose:
			default:
				if r.Session != testserver.Session(t, theirs).ID() {
					all = append(all, fmt.Sprint(r.Op, " ", tidy(r.Path)))
				}
			}
		}
	})
	slices.Sort(all)
	// A listing that has overtaken its create is made again.
	return slices.CompactFunc(all, func(a, b string) bool { return a == b && strings.HasPrefix(a, "getChildren") })
}

// The hooks may be called by many goroutines at once: here by waits that are cancelled, many at a time. All spans end.
func TestConcurrentSafe(t *testing.T) {
	inBubble(t, func(t *world) {
		hold(t, t.client("the holder"), "")
		c := t.client("the client")
		var callers errgroup.Group
		for i := range 20 {
			callers.Go(func() error {
				for n := range 10 {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Duration(i*n)*time.Millisecond/10, cancel)
					if err := c.mx.Lock(ctx); !errors.Is(err, context.Canceled) {
						return err
					}
				}
				return nil
			})
		}
		must(t, callers.Wait())
		pass(soon)
		if began, ended := len(c.spans.Started()), len(c.spans.Ended()); began != ended || began < 200 {
			t.Errorf("%d spans have begun, and %d have ended", began, ended)
		}
	})
}
