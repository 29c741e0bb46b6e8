package zklock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func asyncMutex(t *testing.T, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	return newMutex(t, m, path, append(opts, zklock.WithAsyncRelease())...)
}

// took returns how long f took, in virtual time.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// A Lock and Unlock take one round trip in place of two, and the next Lock does not find the node of the last one. The lease
// of Acquire waits as before, and so does a MultiLock unless all of its locks have the option.
func TestAsyncTakesOneRoundTrip(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		m := connect()
		mx := asyncMutex(t, m, lockPath)
		curators, err := semaphore.New(m, "/locks/curator", 1, semaphore.WithCuratorLayout(), semaphore.WithAsyncRelease())
		must(t, err)
		several := map[string]*zklock.MultiLock{
			"async":     newMulti(t, mx, asyncMutex(t, m, "/locks/two")),
			"mixed":     newMulti(t, mx, newMutex(t, m, "/locks/three")),
			"Curator's": newMulti(t, mx, curators),
		}
		nothingFirst := func() {}
		for what, c := range map[string]struct {
			first, call func()
			want        time.Duration
		}{
			"Lock twice": {nothingFirst, func() {
				for range 2 {
					must(t, mx.Lock(t.Context()))
					must(t, mx.Unlock())
				}
			}, 2 * roundTrip},
			"Do":     {nothingFirst, func() { must(t, mx.Do(t.Context(), nothing)) }, roundTrip},
			"Locker": {nothingFirst, func() { l := mx.Locker(nil); l.Lock(); l.Unlock() }, roundTrip}, //nolint:staticcheck // nothing is done in between
			"Acquire": {nothingFirst, func() {
				l, err := mx.Acquire(t.Context())
				must(t, err)
				must(t, l.Release(t.Context()))
			}, 2 * roundTrip},
			"Unlock of several":                   {func() { must(t, several["async"].Lock(t.Context())) }, func() { must(t, several["async"].Unlock()) }, 0},
			"Unlock of several, one waits":        {func() { must(t, several["mixed"].Lock(t.Context())) }, func() { must(t, several["mixed"].Unlock()) }, roundTrip},
			"Unlock of several, one is Curator's": {func() { must(t, several["Curator's"].Lock(t.Context())) }, func() { must(t, several["Curator's"].Unlock()) }, 0},
		} {
			c.first() // makes the directories
			c.call()
			time.Sleep(time.Second)
			server.Delay(roundTrip / 2)
			c.first()
			if d := took(c.call); d != c.want {
				t.Errorf("%s took %v, want %v", what, d, c.want)
			}
			server.Delay(0)
			time.Sleep(time.Second)
		}
	})
}

// More locks than there are deletes at a time are unlocked at once. All nodes go, and no Lock after that finds the node of the
// Lock before it.
func TestAsyncManyAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		const many = 300
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
		server.Delay(5 * time.Millisecond)
		time.Sleep(time.Second)
		for _, mx := range locks {
			wantChildren(t, m, mx.Path(), 0)
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

// When Close has returned nil, the lock is free, whatever was under way. Without a server it says that it does not know. The
// Release hook is told once of what Close itself releases: that counts as pending.
func TestAsyncClose(t *testing.T) {
	for _, away := range []bool{false, true} {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
			told := make(chan error, 2)
			m, other := connect(session.WithTrace(session.Trace{
				Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
					return ctx, func(err error) { told <- err }
				},
			})), connect()
			mx := asyncMutex(t, m, lockPath)
			must(t, mx.Lock(t.Context()))
			server.Delay(10 * time.Millisecond)
			if away {
				server.Disconnect()
				server.Refuse(true)
				synctest.Wait()
			}
			must(t, mx.Unlock())
			if err := m.Close(); (err != nil) != away {
				t.Errorf("Close without servers %v: %v", away, err)
			}
			wantErr(t, "the release", receive(t, "the end of the release", told), queue.ErrReleasePending)
			synctest.Wait()
			if len(told) > 0 {
				t.Errorf("told again: %v", <-told)
			}
			server.Refuse(false)
			server.Heal()
			if !away {
				wantChildren(t, other, lockPath, 0)
			}
			// As after the end of a program without Close, the session's timeout frees the lock.
			if d := took(func() { must(t, newMutex(t, other, lockPath).Lock(t.Context())) }); d > 20*time.Second {
				t.Errorf("the lock was free after %v", d)
			}
		})
	}
}
