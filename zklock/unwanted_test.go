package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A MultiLock that does not get all of its locks keeps the place of none, also if one has WithLazyRelease.
func TestMultiKeepsNothingUnused(t *testing.T) {
	const first, busy = "/locks/a", "/locks/b"
	wantBusy := func(t *testing.T, err error) {
		t.Helper()
		wantErr(t, "a try", err, queue.ErrBusy)
	}
	for what, call := range map[string]func(*testing.T, *zklock.MultiLock){
		"TryLock": func(t *testing.T, m *zklock.MultiLock) {
			ok, err := m.TryLock(t.Context())
			must(t, err)
			if ok {
				t.Error("TryLock got a lock that is held")
			}
		},
		"TryAcquire": func(t *testing.T, m *zklock.MultiLock) {
			_, err := m.TryAcquire(t.Context())
			wantBusy(t, err)
		},
		"Lock whose context ends": func(t *testing.T, m *zklock.MultiLock) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantErr(t, "Lock", m.Lock(ctx), context.DeadlineExceeded)
		},
		"Do whose context ends": func(t *testing.T, m *zklock.MultiLock) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := m.Do(ctx, func(context.Context) error { t.Error("called"); return nil })
			wantErr(t, "Do", err, context.DeadlineExceeded)
		},
	} {
		for kind, lazily := range map[string]func(*testing.T, *session.Manager) zklock.ContextLocker{
			"mutex": func(t *testing.T, m *session.Manager) zklock.ContextLocker { return newMutex(t, m, first, lazy) },
			"readers": func(t *testing.T, m *session.Manager) zklock.ContextLocker {
				return lazyRW(t, m, first).Reader()
			},
			"writer": func(t *testing.T, m *session.Manager) zklock.ContextLocker { return lazyRW(t, m, first) },
		} {
			t.Run(what+"/"+kind, func(t *testing.T) {
				inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
					m, other := connect(), connect()
					stranger := newMutex(t, other, busy, lazy) // a try takes that for a place that may leave, and enters
					must(t, stranger.Lock(t.Context()))
					call(t, newMulti(t, lazily(t, m), newMutex(t, m, busy)))
					time.Sleep(time.Second) // the delete is on its way
					wantChildren(t, other, first, 0)
					wantChildren(t, other, busy, 1)
				})
			})
		}
	}
}

// The same holds if one of the locks fails.
func TestMultiKeepsNothingAfterError(t *testing.T) {
	const first, conflict = "/locks/a", "/locks/b"
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		m, other := connect(), connect()
		sem, err := semaphore.New(other, conflict, 1)
		must(t, err)
		must(t, sem.Lock(t.Context()))
		multi := newMulti(t, newMutex(t, m, first, lazy), newMutex(t, m, conflict))
		wantErr(t, "Lock", multi.Lock(t.Context()), queue.ErrConflict)
		time.Sleep(time.Second) // the delete is on its way
		wantChildren(t, other, first, 0)
	})
}

// A process whose slot is taken by a lost hold keeps no place, and hands none to itself: no goroutine in Lock can use it.
func TestLostHoldKeepsNoPlace(t *testing.T) {
	for kind, newLock := range map[string]func(*testing.T, *session.Manager) slotted{
		"mutex": func(t *testing.T, m *session.Manager) slotted { return newMutex(t, m, lockPath, lazy) },
		"local": func(t *testing.T, m *session.Manager) slotted {
			return newMutex(t, m, lockPath, lazy, zklock.WithLocalHandover(2))
		},
		"writer": func(t *testing.T, m *session.Manager) slotted { return lazyRW(t, m, lockPath) },
		"multi": func(t *testing.T, m *session.Manager) slotted {
			return newMulti(t, newMutex(t, m, lockPath, lazy), newMutex(t, m, lockPath+"-second", lazy))
		},
	} {
		for what, lose := range losses {
			t.Run(kind+"/"+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
					h := lostHold{server: server, m: connect()}
					h.lock = newLock(t, h.m)
					must(t, h.lock.Lock(t.Context()))
					var waits []<-chan error
					for range 3 {
						waits = append(waits, background(func() error {
							if err := h.lock.Lock(t.Context()); err != nil {
								return err
							}
							return h.lock.Unlock()
						}))
					}
					time.Sleep(time.Second) // they wait for their turn
					lose(t, h)
					time.Sleep(time.Second) // less than a place is kept for
					if h.lock.Held() {
						t.Fatal("held after the loss")
					}
					if names := h.nodes(t); len(names) != 0 {
						t.Errorf("a process that cannot use the lock has a place: %v", names)
					}
					if ok, err := h.lock.TryLock(t.Context()); ok || err != nil {
						t.Errorf("TryLock beside the lost hold: %v, %v", ok, err)
					}
					wantErr(t, "Unlock", h.lock.Unlock(), session.ErrLost)
					for _, w := range waits {
						must(t, receive(t, "a waiter", w))
					}
				})
			})
		}
	}
}

func lazyRW(t *testing.T, m *session.Manager, path string) *rwlock.RWMutex {
	t.Helper()
	rw, err := rwlock.New(m, path, rwlock.WithLazyRelease(time.Minute))
	must(t, err)
	return rw
}

// wantChildren fails the test unless a directory has n children.
func wantChildren(t *testing.T, m *session.Manager, dir string, n int) {
	t.Helper()
	s, err := m.Session(t.Context())
	must(t, err)
	names, _, err := s.Children(t.Context(), dir)
	must(t, err)
	if len(names) != n {
		t.Errorf("%s has %v, want %d", dir, names, n)
	}
}
