package zklock_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/loglines"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// limited is a lock with WithMaxHold(time.Minute).
type limited interface {
	slotted
	Do(ctx context.Context, f func(context.Context) error) error
}

// limitedLocks makes them at lockPath.
var limitedLocks = map[string]func(t *testing.T, m *session.Manager) limited{
	"mutex": func(t *testing.T, m *session.Manager) limited { return limitedMutex(t, m) },
	"local": func(t *testing.T, m *session.Manager) limited {
		return limitedMutex(t, m, zklock.WithLocalHandover(5))
	},
	"kept": func(t *testing.T, m *session.Manager) limited {
		return limitedMutex(t, m, zklock.WithLazyRelease(time.Minute))
	},
	"writer": func(t *testing.T, m *session.Manager) limited { return limitedRW(t, m) },
	"reader": func(t *testing.T, m *session.Manager) limited { return limitedRW(t, m).Reader() },
	"semaphore": func(t *testing.T, m *session.Manager) limited {
		s, err := semaphore.New(m, lockPath, 1, semaphore.WithMaxHold(time.Minute))
		must(t, err)
		return s
	},
	"multi": func(t *testing.T, m *session.Manager) limited {
		return newMulti(t, newMutex(t, m, "/locks/another"), limitedMutex(t, m))
	},
}

func limitedMutex(t *testing.T, m *session.Manager, opts ...zklock.Option) *zklock.Mutex {
	return newMutex(t, m, lockPath, append(opts, zklock.WithMaxHold(time.Minute))...)
}

func limitedRW(t *testing.T, m *session.Manager) *rwlock.RWMutex {
	rw, err := rwlock.New(m, lockPath, rwlock.WithMaxHold(time.Minute))
	must(t, err)
	return rw
}

// watched is what a manager tells of holds that last for too long.
type watched struct {
	log  *loglines.Recorder
	told []session.HoldInfo // by the hook
}

// options are those of a manager.
func (w *watched) options() []session.Option {
	w.log = loglines.New()
	hook := func(_ context.Context, h session.HoldInfo) { w.told = append(w.told, h) }
	return []session.Option{session.WithLogger(slog.New(w.log)), session.WithTrace(session.Trace{HeldTooLong: hook})}
}

// holds fails the test unless there were n of them.
func (w *watched) holds(t *testing.T, n int) {
	t.Helper()
	lines := w.log.With("held for too long")
	if len(lines) != n || len(w.told) != n {
		t.Errorf("told of %d and %d holds, want %d: %v, %v", len(lines), len(w.told), n, lines, w.told)
	}
}

// eachLimited runs f for each kind of lock, in virtual time.
func eachLimited(t *testing.T, f func(t *testing.T, lock, rival limited, w *watched)) {
	for kind, newLock := range limitedLocks {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
				w := &watched{}
				lock := newLock(t, connect(w.options()...))
				if kind == "reader" {
					kind = "writer"
				}
				f(t, lock, limitedLocks[kind](t, connect()), w)
			})
		})
	}
}

// When a hold has lasted for its time, its context ends, and the log and the hook tell. The lock stays held,
// and nobody else gets it. The next hold has all of its time.
func TestMaxHold(t *testing.T) {
	eachLimited(t, func(t *testing.T, lock, rival limited, w *watched) {
		for i := range 3 {
			began := time.Now()
			err := lock.Do(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				if d := time.Since(began); d != time.Minute {
					t.Errorf("the context has ended after %v", d)
				}
				wantErr(t, "the cause", context.Cause(ctx), queue.ErrHeldTooLong)
				wantErr(t, "the context", ctx.Err(), context.Canceled)
				late, cancel := context.WithCancel(ctx)
				defer cancel()
				wantErr(t, "a context from it", context.Cause(late), queue.ErrHeldTooLong)
				time.Sleep(2 * time.Minute)
				if l, ok := queue.LeaseFrom(ctx); ok && l.Err() != nil || !lock.Held() {
					t.Errorf("held: %v", lock.Held())
				}
				if ok, err := rival.TryLock(t.Context()); ok || err != nil {
					t.Errorf("TryLock of another process: %v, %v", ok, err)
				}
				return ctx.Err()
			})
			wantErr(t, "Do", err, queue.ErrHeldTooLong)
			if errors.Is(err, context.Canceled) {
				t.Errorf("Do: %v, which is no cancellation by the caller", err)
			}
			w.holds(t, i+1)
			must(t, rival.Lock(t.Context()))
			must(t, rival.Unlock())
		}
		must(t, lock.Lock(t.Context()))
		time.Sleep(59 * time.Second)
		must(t, lock.Unlock())
		time.Sleep(2 * time.Minute)
		w.holds(t, 3)
		must(t, lock.Lock(t.Context()))
		time.Sleep(2 * time.Minute)
		w.holds(t, 4)
		must(t, lock.Unlock())
	})
}

// What Do returns when the time is over depends on what its function returns, and on the caller's context.
func TestMaxHoldErrorOfDo(t *testing.T) {
	eachLimited(t, func(t *testing.T, lock, _ limited, _ *watched) {
		ctx, cancel := context.WithCancel(t.Context())
		for what, c := range map[string]struct {
			work      func(ctx context.Context) error
			all, none []error
		}{
			"the work is done":  {func(context.Context) error { return nil }, nil, []error{queue.ErrHeldTooLong}},
			"another error":     {func(context.Context) error { return io.EOF }, []error{io.EOF, queue.ErrHeldTooLong}, nil},
			"the context's":     {func(ctx context.Context) error { return ctx.Err() }, []error{queue.ErrHeldTooLong}, []error{context.Canceled, session.ErrLost}},
			"the cause":         {context.Cause, []error{queue.ErrHeldTooLong}, []error{context.Canceled}},
			"the caller's ends": {func(ctx context.Context) error { cancel(); return ctx.Err() }, []error{queue.ErrHeldTooLong, context.Canceled}, nil},
		} {
			parent := t.Context()
			if what == "the caller's ends" {
				parent = ctx
			}
			err := lock.Do(parent, func(ctx context.Context) error {
				time.Sleep(2 * time.Minute)
				return c.work(ctx)
			})
			if err != nil && c.all == nil {
				t.Errorf("%s: %v", what, err)
			}
			for _, want := range c.all {
				wantErr(t, what, err, want)
			}
			for _, other := range c.none {
				if errors.Is(err, other) {
					t.Errorf("%s: %v matches %v", what, err, other)
				}
			}
		}
		err := lock.Do(t.Context(), func(context.Context) error { return io.EOF })
		if !errors.Is(err, io.EOF) || errors.Is(err, queue.ErrHeldTooLong) {
			t.Errorf("in time: %v", err)
		}
	})
}

// Re-entering is the same hold. A place that is handed over or kept is held anew.
func TestMaxHoldOfEachHold(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		w := &watched{}
		m := connect(w.options()...)
		ctx := queue.WithOwner(t.Context())
		outer := limitedMutex(t, m)
		err := outer.Do(ctx, func(inside context.Context) error {
			time.Sleep(40 * time.Second)
			for _, ctx := range []context.Context{ctx, inside} {
				began := time.Now()
				err := outer.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				if d := time.Since(began); d > 20*time.Second {
					t.Errorf("an inner hold has lasted for %v", d)
				}
				if own := ctx.Err() != nil; errors.Is(err, context.Canceled) != own || errors.Is(err, queue.ErrHeldTooLong) == own {
					t.Errorf("the inner Do: %v", err)
				}
			}
			return nil
		})
		must(t, err)
		w.holds(t, 1)
		for what, opt := range map[string]zklock.Option{
			"handed over": zklock.WithLocalHandover(5), "kept": zklock.WithLazyRelease(time.Minute),
		} {
			shared := limitedMutex(t, m, opt)
			must(t, shared.Lock(t.Context()))
			first, err := shared.Contenders(t.Context())
			must(t, err)
			next := make(chan *queue.Lease, 1)
			get := func() {
				l, err := shared.Acquire(t.Context())
				must(t, err)
				next <- l
			}
			if what == "handed over" {
				go get()
				synctest.Wait()
			}
			time.Sleep(5 * time.Second) // no place is kept for longer than a session timeout
			must(t, shared.Unlock())
			if what == "kept" {
				time.Sleep(time.Second)
				get()
			}
			l := receive(t, what, next)
			if len(first) == 0 || l.Path() != first[0].Path {
				t.Errorf("%s: the place is %s, was %v", what, l.Path(), first)
			}
			inside, cancel := l.Context(t.Context())
			if d := took(func() { <-inside.Done() }); d != time.Minute {
				t.Errorf("%s: the hold has lasted for %v", what, d)
			}
			cancel()
			must(t, l.Err())
			must(t, l.Release(t.Context()))
			time.Sleep(2 * time.Minute)
		}
		w.holds(t, 3)
	})
}

// At its time a context has ended for all that look at it, whether or not a timer has run.
func TestMaxHoldGoesByTheClock(t *testing.T) {
	eachLimited(t, func(t *testing.T, lock, _ limited, _ *watched) {
		for range 20 {
			err := lock.Do(t.Context(), func(ctx context.Context) error {
				time.Sleep(time.Minute - 1)
				must(t, ctx.Err())
				time.Sleep(time.Nanosecond)
				return ctx.Err()
			})
			wantErr(t, "Do", err, queue.ErrHeldTooLong)
		}
	})
}

// A loss goes before. It is no hold that lasts for too long, and a long hold is no loss, for example for
// a Locker.
func TestMaxHoldAndLosses(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		w := &watched{}
		m := connect(w.options()...)
		s, err := m.Session(t.Context())
		must(t, err)
		lost := 0
		mx := limitedMutex(t, m)
		multi := newMulti(t, newMutex(t, m, "/locks/another"), limitedMutex(t, m))
		for _, l := range []interface {
			Done() <-chan struct{}
		}{mx, multi} {
			locker := mx.Locker(func(error) { lost++ })
			if l == any(multi) {
				locker = multi.Locker(func(error) { lost++ })
			}
			locker.Lock()
			time.Sleep(2 * time.Minute)
			select {
			case <-l.Done():
				t.Error("done, although held")
			default:
			}
			locker.Unlock()
		}
		w.holds(t, 2)
		if lost > 0 {
			t.Errorf("onLost was called %d times", lost)
		}
		err = mx.Do(t.Context(), func(ctx context.Context) error {
			must(t, server.Expire(t.Context(), s.ID()))
			<-ctx.Done()
			time.Sleep(2 * time.Minute)
			return ctx.Err()
		})
		wantErr(t, "Do", err, session.ErrLost)
		if errors.Is(err, queue.ErrHeldTooLong) {
			t.Error(err)
		}
		w.holds(t, 2)
	})
}

// The time of a MultiLock begins when it has all of its locks. Until then nobody works under them.
func TestMaxHoldOfMultiBegins(t *testing.T) {
	for _, opts := range [][]zklock.Option{{}, {zklock.WithLocalHandover(5)}, {lazy}} {
		multiBegins(t, append(opts, zklock.WithMaxHold(time.Minute)))
	}
}

func multiBegins(t *testing.T, opts []zklock.Option) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		var w watched
		m := connect(w.options()...)
		first := newMutex(t, m, "/locks/first", opts...)
		multi, rival := newMulti(t, first, newMutex(t, m, "/locks/second")), newMutex(t, connect(), "/locks/second")
		must(t, rival.Lock(t.Context()))
		time.AfterFunc(2*time.Minute, func() { _ = rival.Unlock() })
		err := multi.Do(t.Context(), func(ctx context.Context) error {
			w.holds(t, 0)
			time.Sleep(59 * time.Second)
			must(t, ctx.Err())
			time.Sleep(2 * time.Second)
			return context.Cause(ctx)
		})
		wantErr(t, "Do", err, queue.ErrHeldTooLong)
		w.holds(t, 1)
		must(t, rival.Lock(t.Context())) // a Lock that gives up has no limit to pass
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		wantErr(t, "Lock", multi.Lock(ctx), context.DeadlineExceeded)
		time.Sleep(2 * time.Minute)
		w.holds(t, 1)
		must(t, rival.Unlock())
	})
}

// The error of nested Dos says once that the outer hold has lasted for too long.
func TestMaxHoldOfOuterDo(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		outer := newMutex(t, m, "/locks/outer", zklock.WithMaxHold(time.Minute))
		inner := newMutex(t, m, "/locks/inner", zklock.WithMaxHold(time.Hour))
		err := outer.Do(t.Context(), func(ctx context.Context) error {
			return inner.Do(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return errors.New("no end")
			})
		})
		wantErr(t, "Do", err, queue.ErrHeldTooLong)
		if n := strings.Count(err.Error(), "held for too long"); n != 1 {
			t.Errorf("%d times in %q", n, err)
		}
	})
}

// A hold that has ended is freed, however much of its time was left.
func TestMaxHoldFreed(t *testing.T) {
	mx := newMutex(t, connect(t), testserver.Path(t), zklock.WithMaxHold(time.Hour))
	l, err := mx.Acquire(patient(t))
	must(t, err)
	must(t, l.Release(patient(t)))
	seen := weak.Make(l)
	l = nil
	zktest.Eventually(t, testserver.Patience, "the lease to be freed", func() bool {
		runtime.GC()
		return seen.Value() == nil
	})
}

func TestMaxHoldMisuse(t *testing.T) {
	m := connect(t)
	for _, d := range []time.Duration{0, -time.Second} {
		_, err := zklock.New(m, "/x", zklock.WithMaxHold(d))
		wantErr(t, "mutex", err, session.ErrInvalid)
		_, err = rwlock.New(m, "/x", rwlock.WithMaxHold(d))
		wantErr(t, "rwlock", err, session.ErrInvalid)
		_, err = semaphore.New(m, "/x", 1, semaphore.WithMaxHold(d))
		wantErr(t, "semaphore", err, session.ErrInvalid)
	}
}
