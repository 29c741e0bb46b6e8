package zklock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// everyHook returns hooks of all kinds, which call f with the name of the hook.
func everyHook(f func(ctx context.Context, hook string)) session.Trace {
	end := func(ctx context.Context, hook string) func(error) { return func(error) { f(ctx, "end of "+hook) } }
	return session.Trace{
		Traceparent: func(ctx context.Context) string { f(ctx, "Traceparent"); return "" },
		Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			f(ctx, "Request")
			return ctx, end(ctx, "Request")
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			f(ctx, "Watch")
			return ctx, end(ctx, "Watch")
		},
		Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			f(ctx, "Acquire")
			return ctx, func(session.AcquireResult) { f(ctx, "end of Acquire") }
		},
		Release: func(ctx, _ context.Context, _ session.HoldInfo) (context.Context, func(error)) {
			f(ctx, "Release")
			return ctx, end(ctx, "Release")
		},
		Hold: func(ctx context.Context, _ session.HoldInfo) func(error) {
			f(ctx, "Hold")
			return end(ctx, "Hold")
		},
		Loss:  func(ctx context.Context, _ session.HoldInfo, _ error) { f(ctx, "Loss") },
		Retry: func(ctx context.Context, _ session.RetryInfo) { f(ctx, "Retry") },
	}
}

// A hook may look at the lock, its lease, the session and the manager, at any time, also when it is told of a
// loss.
func TestHooksMayLook(t *testing.T) {
	for name, opts := range map[string][]zklock.Option{
		"plain": nil, "local": {zklock.WithLocalHandover(1)}, "kept": {zklock.WithLazyRelease(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, srv *zktest.Server, open func(...session.Option) *session.Manager) {
				var look atomic.Pointer[func(context.Context)] // nil until there is something to look at
				var calls sync.Map
				m := open(session.WithTrace(everyHook(func(ctx context.Context, hook string) {
					if look := look.Load(); look != nil {
						calls.Store(hook, true)
						(*look)(ctx)
					}
				})))
				s, err := m.Session(t.Context())
				must(t, err)
				mx := newMutex(t, m, "/lock", opts...)
				f := func(ctx context.Context) {
					if l, ok := queue.LeaseFrom(ctx); ok {
						_ = l.Err()
					}
					_, _, _, _ = mx.Held(), s.Err(), s.Remaining(), m.State()
				}
				look.Store(&f)
				must(t, mx.Lock(t.Context()))
				must(t, mx.Unlock())
				must(t, mx.Lock(t.Context()))
				must(t, srv.Expire(t.Context(), s.ID()))
				<-s.Done()
				synctest.Wait()
				wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
				synctest.Wait()
				for _, hook := range []string{"Acquire", "Request", "end of Request", "end of Acquire", "Hold", "Loss", "end of Hold", "Release", "end of Release"} {
					if _, ok := calls.Load(hook); !ok {
						t.Errorf("the hook %s was not called", hook)
					}
				}
			})
		})
	}
}

// A hook that never returns at the end of a hold holds up neither the delete nor the next holder, nor Close
// beyond its bound.
func TestHookThatBlocks(t *testing.T) {
	for _, c := range []struct {
		hook string
		lost bool
	}{
		{"Loss", true}, {"end of Hold", true},
		{"end of Hold", false}, {"Release", false}, {"end of Release", false},
	} {
		for name, opts := range map[string][]zklock.Option{"plain": nil, "local": {zklock.WithLocalHandover(5)}} {
			t.Run(fmt.Sprintf("%s, lost %v, %s", c.hook, c.lost, name), func(t *testing.T) {
				inBubble(t, func(t *testing.T, srv *zktest.Server, open func(...session.Option) *session.Manager) {
					forEver, struck := make(chan struct{}), make(chan struct{})
					var once sync.Once
					m := open(session.WithTrace(everyHook(func(ctx context.Context, hook string) {
						_ = ctx.Value("what tracers look for")
						if hook == c.hook {
							once.Do(func() { close(struck) })
							<-forEver
						}
					})))
					mx := newMutex(t, m, "/lock", opts...)
					must(t, mx.Lock(t.Context()))
					next := newMutex(t, open(), "/lock", opts...)
					got, unlocked := make(chan error, 1), make(chan struct{})
					go func() { got <- next.Lock(t.Context()) }()
					synctest.Wait()
					began := time.Now()
					if c.lost {
						s, err := m.Session(t.Context())
						must(t, err)
						must(t, srv.Expire(t.Context(), s.ID()))
						close(unlocked)
					} else {
						go func() {
							defer close(unlocked)
							_ = mx.Unlock()
						}()
					}
					<-struck
					must(t, <-got)
					if took := time.Since(began); took > 1100*time.Millisecond {
						t.Errorf("the next holder had to wait for %v", took)
					}
					began = time.Now()
					_ = m.Close()
					if took := time.Since(began); took > 6*time.Second {
						t.Errorf("Close took %v", took)
					}
					close(forEver)
					<-unlocked
				})
			})
		}
	}
}

// BenchmarkHooks measures a lock and unlock without contention on a server of this process, without hooks and with one of
// each. They take turns, since the speed of a machine changes.
func BenchmarkHooks(b *testing.B) {
	srv := zktest.Start(b)
	var calls atomic.Int64
	cycle := func(opts ...session.Option) func() time.Duration {
		m, err := session.Connect(b.Context(), srv.ConnectString(), opts...)
		must(b, err)
		b.Cleanup(func() { _ = m.Close() })
		mx := newMutex(b, m, "/lock")
		return func() time.Duration {
			began := time.Now()
			must(b, mx.Lock(b.Context()))
			must(b, mx.Unlock())
			return time.Since(began)
		}
	}
	without := cycle()
	with := cycle(session.WithTrace(everyHook(func(context.Context, string) { calls.Add(1) })))
	var took, tookWith []time.Duration
	for b.Loop() {
		took, tookWith = append(took, without()), append(tookWith, with())
	}
	median := func(all []time.Duration) float64 { slices.Sort(all); return float64(all[len(all)/2]) / 1000 }
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
	b.ReportMetric(median(took), "without-µs")
	b.ReportMetric(median(tookWith), "with-µs")
	b.ReportMetric(float64(calls.Load())/float64(b.N), "hooks")
}
