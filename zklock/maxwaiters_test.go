package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// queued has n contenders of another process stand in a queue, the first of which holds. It returns what lets them go.
func queued(t *testing.T, m *session.Manager, dir string, n int) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(patient(t))
	var all sync.WaitGroup
	for i := range n {
		mx := newMutex(t, m, dir)
		all.Go(func() {
			_ = mx.Do(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
		})
		testserver.WaitChildren(t, dir, i+1)
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// wantFull fails the test unless an error says that so many contenders are ahead.
func wantFull(t *testing.T, what string, err error, ahead int) {
	t.Helper()
	var why *queue.WaitError
	if !errors.Is(err, queue.ErrBusy) || !errors.As(err, &why) || !strings.Contains(err.Error(), fmt.Sprintf("%d ahead", ahead)) {
		t.Errorf("%s: %v, want that %d are ahead", what, err, ahead)
	}
}

// A call that would have more than n contenders ahead of it is refused, and leaves no node. With n of them it waits.
func TestMaxWaiters(t *testing.T) {
	theirs, ours := connect(t), connect(t)
	for _, n := range []int{0, 1, 3} {
		for ahead := range 5 {
			dir := testserver.Path(t)
			leave := queued(t, theirs, dir, ahead)
			mx := newMutex(t, ours, dir, zklock.WithMaxWaiters(n))
			calls := map[string]func(context.Context) error{
				"Lock": mx.Lock,
				"Do":   func(ctx context.Context) error { return mx.Do(ctx, func(context.Context) error { return nil }) },
				"Acquire": func(ctx context.Context) error {
					_, err := mx.Acquire(ctx)
					return err
				},
				"MultiLock": newMulti(t, newMutex(t, ours, dir+"-other"), mx).Lock,
				"MultiLock with a shared place": newMulti(t, newMutex(t, ours, dir+"-other"),
					newMutex(t, ours, dir, zklock.WithMaxWaiters(n), zklock.WithLocalHandover(1))).Lock,
			}
			if ahead <= n {
				got := background(func() error { return mx.Lock(patient(t)) })
				testserver.WaitChildren(t, dir, ahead+1)
				defer func() {
					must(t, receive(t, "Lock", got))
					must(t, mx.Unlock())
				}()
				calls = nil
			}
			for what, call := range calls {
				wantFull(t, fmt.Sprintf("%s, n = %d", what, n), call(patient(t)), ahead)
				if left := len(testserver.Children(t, dir)); left != ahead {
					t.Errorf("%s: %d nodes, want %d", what, left, ahead)
				}
			}
			leave()
		}
	}
}

// A waiter that was let in stays, although it comes behind others once its session is lost.
func TestMaxWaitersLost(t *testing.T) {
	dir := testserver.Path(t)
	theirs := connect(t)
	for name, opts := range map[string][]zklock.Option{"a place of its own": nil, "a shared place": {zklock.WithLocalHandover(2)}} {
		proxy := testserver.Proxy(t)
		m := testserver.Connect(t, proxy.Addr())
		mx := newMutex(t, m, dir, append(opts, zklock.WithMaxWaiters(1))...)
		holder := newMutex(t, theirs, dir)
		must(t, holder.Lock(patient(t)))
		waits := background(func() error { return mx.Lock(patient(t)) })
		testserver.WaitChildren(t, dir, 2)
		behind := newMutex(t, theirs, dir)
		ctx, cancel := context.WithCancel(patient(t))
		late := background(func() error { return behind.Lock(ctx) })
		testserver.WaitChildren(t, dir, 3)
		before := testserver.Children(t, dir)
		expire(t, proxy, m)
		zktest.Eventually(t, testserver.Patience, "another node", func() bool {
			now := testserver.Children(t, dir)
			return len(now) == 3 && strings.Join(now, " ") != strings.Join(before, " ")
		})
		pending(t, name, waits)
		must(t, holder.Unlock())
		must(t, receive(t, "the one that came later", late))
		must(t, behind.Unlock())
		cancel()
		must(t, receive(t, name, waits))
		must(t, mx.Unlock())
		testserver.WaitChildren(t, dir, 0)
	}
}

// With a shared place, goroutines of the process count as well, and those that find too many send nothing.
func TestMaxWaitersLocal(t *testing.T) {
	const n = 3
	for name, opt := range map[string]zklock.Option{"hand-over": zklock.WithLocalHandover(100), "kept": lazy} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
				mx := newMutex(t, connect(), lockPath, opt, zklock.WithMaxWaiters(n))
				must(t, mx.Lock(t.Context()))
				var got atomic.Int64
				var all sync.WaitGroup
				for range n {
					all.Go(func() {
						must(t, mx.Lock(t.Context()))
						got.Add(1)
						time.Sleep(time.Minute)
						must(t, mx.Unlock())
					})
					time.Sleep(time.Millisecond)
				}
				server.ResetRequests()
				wantFull(t, "one more", mx.Lock(t.Context()), n+1)
				if all := server.Requests(); len(all) > 0 {
					t.Errorf("requests: %v", all)
				}
				must(t, mx.Unlock())
				all.Wait()
				if got.Load() != n {
					t.Errorf("%d of %d", got.Load(), n)
				}

				// Others are ahead of the place that is shared.
				time.Sleep(2 * time.Minute)
				other := connect()
				holder := newMutex(t, other, lockPath)
				must(t, holder.Lock(t.Context()))
				var late sync.WaitGroup
				late.Go(func() {
					w := newMutex(t, other, lockPath)
					must(t, w.Lock(t.Context()))
					must(t, w.Unlock())
				})
				time.Sleep(time.Second)
				for range 2 {
					late.Go(func() {
						must(t, mx.Lock(t.Context()))
						must(t, mx.Unlock())
					})
				}
				time.Sleep(time.Second)
				wantFull(t, "behind others", mx.Lock(t.Context()), n+1)
				must(t, holder.Unlock())
				late.Wait()
			})
		})
	}
}

// Goroutines that share a place which comes too late are all refused, and so are those that have come meanwhile. Those that
// were let in stay when their turn has ended and they enter anew.
func TestMaxWaitersSharedContender(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		other := connect()
		var theirs []*zklock.Mutex
		var waiting sync.WaitGroup
		for i := range 4 {
			mx := newMutex(t, other, lockPath)
			theirs = append(theirs, mx)
			if i == 0 {
				must(t, mx.Lock(t.Context()))
				continue
			}
			waiting.Go(func() {
				must(t, mx.Lock(t.Context()))
				time.Sleep(time.Second)
				must(t, mx.Unlock())
			})
		}
		time.Sleep(time.Second)
		mx := newMutex(t, connect(), lockPath, zklock.WithLocalHandover(1), zklock.WithMaxWaiters(2))
		server.Delay(10 * time.Millisecond)
		var refused []<-chan error
		for range 3 {
			refused = append(refused, background(func() error { return mx.Lock(t.Context()) }))
			time.Sleep(time.Millisecond)
		}
		for _, r := range refused {
			wantErr(t, "behind four", receive(t, "refusal", r), queue.ErrBusy)
		}
		must(t, theirs[0].Unlock())
		waiting.Wait()

		// One hand-over in a turn: the third goroutine enters anew, behind four others.
		must(t, mx.Lock(t.Context()))
		var got []<-chan error
		for range 2 {
			got = append(got, background(func() error {
				err := mx.Lock(t.Context())
				time.Sleep(time.Second)
				return errors.Join(err, mx.Unlock())
			}))
			time.Sleep(time.Millisecond)
		}
		for range 4 {
			waiting.Go(func() {
				w := newMutex(t, other, lockPath)
				must(t, w.Lock(t.Context()))
				time.Sleep(time.Second)
				must(t, w.Unlock())
			})
		}
		time.Sleep(time.Second)
		must(t, mx.Unlock())
		for _, g := range got {
			must(t, receive(t, "one that was let in", g))
		}
		waiting.Wait()
	})
}

// A goroutine that is still on its way into the queue is ahead of those that come after it.
func TestMaxWaitersWhileTrying(t *testing.T) {
	for _, opt := range []zklock.Option{zklock.WithLocalHandover(5), lazy} {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
			mx := newMutex(t, connect(), lockPath, opt, zklock.WithMaxWaiters(0))
			create := server.HoldRequest(zktest.On(zktest.OpCreate, lockPath+"/"))
			first := background(func() error { return mx.Lock(t.Context()) })
			<-create.Hit()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantFull(t, "the second", mx.Lock(ctx), 1)
			create.Release()
			must(t, <-first)
			must(t, mx.Unlock())
		})
	}
}

// A place that nobody uses is not in the way of a call that wants to wait for nobody.
func TestMaxWaitersKept(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		ours, theirs := connect(), connect()
		for name, m := range map[string]*session.Manager{"another process": theirs, "the same session": ours} {
			keeper := newMutex(t, m, lockPath, lazy)
			for range 2 {
				must(t, keeper.Lock(t.Context()))
				must(t, keeper.Unlock())
			}
			time.Sleep(time.Second)
			mx := newMutex(t, ours, lockPath, zklock.WithMaxWaiters(0))
			if err := mx.Lock(t.Context()); err != nil {
				t.Fatalf("kept by %s: %v", name, err)
			}
			must(t, mx.Unlock())
			time.Sleep(time.Minute)
		}
	})
}

// The options have bad values, and combinations that make no sense.
func TestEntryOptionsInvalid(t *testing.T) {
	m := connect(t)
	for what, opts := range map[string][]zklock.Option{
		"a negative number": {zklock.WithMaxWaiters(-1)},
	} {
		_, err := zklock.New(m, testserver.Path(t), opts...)
		wantErr(t, what, err, session.ErrInvalid)
	}
}
