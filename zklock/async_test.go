package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// asyncLocks makes locks at lockPath whose Unlock waits for no server.
var asyncLocks = map[string]func(t *testing.T, m *session.Manager) slotted{
	"mutex": func(t *testing.T, m *session.Manager) slotted {
		return newMutex(t, m, lockPath, zklock.WithAsyncRelease())
	},
	"local": func(t *testing.T, m *session.Manager) slotted {
		return newMutex(t, m, lockPath, zklock.WithAsyncRelease(), zklock.WithLocalHandover(5))
	},
	"writer": func(t *testing.T, m *session.Manager) slotted { return asyncRW(t, m) },
	"reader": func(t *testing.T, m *session.Manager) slotted { return reader{asyncRW(t, m).Reader()} },
	"semaphore": func(t *testing.T, m *session.Manager) slotted {
		s, err := semaphore.New(m, lockPath, 1, semaphore.WithAsyncRelease())
		must(t, err)
		return s
	},
	"multi": func(t *testing.T, m *session.Manager) slotted {
		second, err := semaphore.New(m, lockPath+"-second", 1, semaphore.WithAsyncRelease())
		must(t, err)
		return newMulti(t, second, asyncRW(t, m), asyncMutex(t, m, lockPath+"-third"))
	},
}

func asyncMutex(t *testing.T, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	return newMutex(t, m, path, append(opts, zklock.WithAsyncRelease())...)
}

func asyncRW(t *testing.T, m *session.Manager) *rwlock.RWMutex {
	rw, err := rwlock.New(m, lockPath, rwlock.WithAsyncRelease())
	must(t, err)
	return rw
}

// reader is a read lock that counts as held while it is.
type reader struct{ rwlock.Reader }

// eachAsync runs f for each kind of lock, in virtual time. rival is a writer of another process.
func eachAsync(t *testing.T, f func(t *testing.T, server *zktest.Server, lock slotted, rival *rwlock.RWMutex, m *session.Manager)) {
	for kind, newLock := range asyncLocks {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				m := connect()
				other := connect()
				rival, err := rwlock.New(other, lockPath)
				must(t, err)
				if kind == "semaphore" {
					rival = nil // no other kind of lock may be there
				}
				f(t, server, newLock(t, m), rival, m)
			})
		})
	}
}

// took returns how long f took, in virtual time.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// A Lock and Unlock take one round trip in place of two. The next Lock does not find the node of the last
// one, which would take more. Nor does a TryLock, which looks first and takes two.
func TestAsyncTakesOneRoundTrip(t *testing.T) {
	const oneWay, rounds = 10 * time.Millisecond, 20
	eachAsync(t, func(t *testing.T, server *zktest.Server, lock slotted, _ *rwlock.RWMutex, _ *session.Manager) {
		must(t, lock.Lock(t.Context())) // makes the directories
		must(t, lock.Unlock())
		time.Sleep(time.Second)
		server.Delay(oneWay)
		all := took(func() {
			for i := range rounds {
				if i%2 == 0 {
					must(t, lock.Lock(t.Context()))
				} else if ok, err := lock.TryLock(t.Context()); !ok {
					t.Fatalf("TryLock: %v, %v", ok, err)
				}
				if d := took(func() { must(t, lock.Unlock()) }); d != 0 {
					t.Fatalf("Unlock took %v", d)
				}
			}
		})
		if want := (rounds/2*1 + rounds/2*2) * 2 * oneWay; all != want {
			t.Errorf("%d rounds took %v, want one round trip for each Lock and two for each TryLock: %v", rounds, all, want)
		}
		server.Heal()
	})
}

// wantNodes fails the test unless there are n nodes at a path.
func wantNodes(t *testing.T, m *session.Manager, path string, n int) {
	t.Helper()
	s, err := m.Session(t.Context())
	must(t, err)
	names, _, err := s.Children(t.Context(), path)
	if errors.Is(err, zk.ErrNoNode) {
		names, err = nil, nil
	}
	must(t, err)
	if len(names) != n {
		t.Errorf("%d nodes, want %d: %v", len(names), n, names)
	}
}

// More locks than the window has room for, and than there are deletes at a time, are unlocked at once. All
// nodes go. No Lock after that finds the node of the Lock before it.
func TestAsyncManyAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		const many, oneWay = 300, 5 * time.Millisecond
		m, locks := connect(), make([]*zklock.Mutex, many)
		for i := range locks {
			locks[i] = asyncMutex(t, m, fmt.Sprint("/locks/many/", i))
			must(t, locks[i].Lock(t.Context()))
		}
		server.Blackhole(zktest.ToServer)
		if d := took(func() {
			for _, mx := range locks {
				must(t, mx.Unlock())
			}
		}); d != 0 {
			t.Errorf("Unlock of %d locks took %v", many, d)
		}
		server.Heal()
		server.Delay(oneWay)
		time.Sleep(time.Second)
		for _, mx := range locks {
			wantNodes(t, m, mx.Path(), 0)
		}
		server.ResetRequests()
		var all sync.WaitGroup
		for _, mx := range locks {
			all.Go(func() {
				for range 10 {
					must(t, mx.Lock(t.Context()))
					must(t, mx.Unlock())
				}
			})
		}
		all.Wait()
		if n := server.Count(zktest.Any(zktest.OpGetData)); n > 0 { // which sets a watch on what is in the way
			t.Errorf("%d locks of %d have found a node in their way", n, 10*many)
		}
		server.Heal()
	})
}

// When Close has returned nil, the lock is free, whatever was under way. Without a server it says that it
// does not know.
func TestAsyncCertainAfterClose(t *testing.T) {
	eachAsync(t, func(t *testing.T, server *zktest.Server, lock slotted, rival *rwlock.RWMutex, m *session.Manager) {
		must(t, lock.Lock(t.Context()))
		server.Delay(10 * time.Millisecond)
		must(t, lock.Unlock())
		must(t, m.Close())
		server.Heal()
		if rival != nil {
			wantNodes(t, rival.Manager(), lockPath, 0)
		}
	})
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		m, other := connect(), connect()
		mx, rival := asyncMutex(t, m, lockPath), newMutex(t, other, lockPath)
		must(t, mx.Lock(t.Context()))
		server.Disconnect()
		server.Refuse(true)
		synctest.Wait()
		must(t, mx.Unlock())
		if err := m.Close(); err == nil {
			t.Error("Close has no error although no server can know")
		}
		server.Refuse(false)
		wantNodes(t, other, lockPath, 1)
		// As after the end of a program without Close, the session's timeout frees the lock.
		if d := took(func() { must(t, rival.Lock(t.Context())) }); d > 20*time.Second {
			t.Errorf("the lock was free after %v", d)
		}
	})
}

// Only the last Unlock of an owner releases, and Do does not wait either. The handle waits as before.
func TestAsyncHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		const oneWay = 10 * time.Millisecond
		m := connect()
		mx := asyncMutex(t, m, lockPath)
		mixed := newMulti(t, asyncMutex(t, m, "/locks/a"), newMutex(t, m, "/locks/b"))
		must(t, mixed.Lock(t.Context()))
		must(t, mixed.Unlock())
		ctx := queue.WithOwner(t.Context())
		must(t, mx.Lock(ctx))
		must(t, mx.Do(ctx, func(context.Context) error { return nil }))
		must(t, mx.Lock(ctx))
		server.Delay(oneWay)
		must(t, mx.Unlock())
		wantNodes(t, m, lockPath, 1)
		must(t, mx.Unlock())
		wantNodes(t, m, lockPath, 0) // the delete has left before the list
		for what, c := range map[string]struct {
			want time.Duration
			call func()
		}{
			"Do":     {2 * oneWay, func() { must(t, mx.Do(t.Context(), func(context.Context) error { return nil })) }},
			"Locker": {2 * oneWay, func() { l := mx.Locker(nil); l.Lock(); l.Unlock() }}, //nolint:staticcheck // nothing is done in between
			"Acquire": {4 * oneWay, func() {
				l, err := mx.Acquire(t.Context())
				must(t, err)
				must(t, l.Release(t.Context()))
			}},
			"a MultiLock with a lock that waits": {4 * oneWay, func() {
				must(t, mixed.Lock(t.Context()))
				must(t, mixed.Unlock())
			}},
		} {
			if d := took(c.call); d != c.want {
				t.Errorf("%s took %v, want %v", what, d, c.want)
			}
		}
		server.Heal()
	})
}

// What the servers say after Unlock has returned goes to the Release hook: a refusal, and a release that is
// confirmed.
func TestAsyncTellsTheReleaseHook(t *testing.T) {
	for what, refuse := range map[string]bool{"confirmed": false, "refused": true} {
		t.Run(what, func(t *testing.T) {
			dir, acl := testserver.Path(t), zk.WorldACL(zk.PermAll)
			if refuse {
				acl = zk.WorldACL(zk.PermAll &^ zk.PermDelete)
			}
			_, err := testserver.Admin(t).Create(dir, nil, 0, acl)
			must(t, err)
			told := make(chan error, 1)
			m := connect(t, session.WithTrace(session.Trace{
				Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
					return ctx, func(err error) { told <- err }
				},
			}))
			mx := newMutex(t, m, dir, zklock.WithAsyncRelease())
			must(t, mx.Lock(patient(t)))
			must(t, mx.Unlock())
			if err := receive(t, "the end of the release", told); errors.Is(err, zk.ErrNoAuth) != refuse || (err == nil) == refuse {
				t.Errorf("the hook got %v", err)
			}
			must(t, m.Close())
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// The Release hook is told of what Close itself releases: that counts as pending.
func TestAsyncHookAtClose(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		told := make(chan error, 2)
		m := connect(session.WithTrace(session.Trace{
			Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
				return ctx, func(err error) { told <- err }
			},
		}))
		mx := asyncMutex(t, m, lockPath)
		must(t, mx.Lock(t.Context()))
		server.Delay(time.Second)
		must(t, mx.Unlock())
		must(t, m.Close())
		wantErr(t, "the release", receive(t, "the end of the release", told), queue.ErrReleasePending)
		synctest.Wait()
		if len(told) > 0 {
			t.Errorf("told again: %v", <-told)
		}
	})
}

// A MultiLock waits for the servers unless all of its locks have the option.
func TestAsyncMultiOfOthers(t *testing.T) {
	for what, c := range map[string]struct {
		other func(*testing.T, *session.Manager) zklock.ContextLocker
		want  time.Duration
	}{
		"without the option": {func(t *testing.T, m *session.Manager) zklock.ContextLocker {
			return newMutex(t, m, "/locks/two")
		}, 2 * time.Millisecond},
		"in Curator's layout": {func(t *testing.T, m *session.Manager) zklock.ContextLocker {
			sem, err := semaphore.New(m, "/locks/two", 1, semaphore.WithCuratorLayout(), semaphore.WithAsyncRelease())
			must(t, err)
			return sem
		}, 0},
	} {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
			m := connect()
			multi := newMulti(t, asyncMutex(t, m, lockPath), c.other(t, m))
			must(t, multi.Lock(t.Context()))
			server.Delay(time.Millisecond)
			if d := took(func() { must(t, multi.Unlock()) }); d != c.want {
				t.Errorf("%s: Unlock took %v, want %v", what, d, c.want)
			}
			server.Heal()
		})
	}
}
