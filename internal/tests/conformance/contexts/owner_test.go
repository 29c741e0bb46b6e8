package contexts

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
)

// An owner enters again what it holds, by Lock and Do and their tries. Where it does not, and without an
// owner, it waits for itself. Acquire does not look at the owner.
func TestOwner(t *testing.T) {
	each(t, func(t *testing.T, w *world, k kind) {
		l := k.new(t, w.connect(), "/lock")
		owner := queue.WithOwner(t.Context())
		for name, c := range map[string]struct {
			ctx    context.Context
			enters bool
		}{
			"the owner":     {owner, k.reentrant},
			"another owner": {queue.WithOwner(owner), false},
			"no owner":      {t.Context(), false},
		} {
			must(t, l.Do(owner, func(context.Context) error {
				ctx := queue.WithMaxWait(c.ctx, bound)
				calls := waits(t, l)
				delete(calls, "Do")
				for what, enter := range calls {
					if _, shared := l.(rwlock.Reader); shared {
						break // readers do not wait for each other
					}
					want, after := error(queue.ErrMaxWait), bound
					if c.enters && what == "Lock" {
						want, after = nil, 0
					}
					check(t, name+": "+what, ctx, enter, want, after)
					if want == nil {
						must(t, l.Unlock())
					}
				}
				ran, err := l.TryDo(ctx, func(ctx context.Context) error {
					if c.enters {
						return l.Do(ctx, func(context.Context) error { return nil })
					}
					return nil
				})
				must(t, err)
				if _, shared := l.(rwlock.Reader); !shared && ran != c.enters {
					t.Errorf("%s: TryDo: %v", name, ran)
				}
				return nil
			}))
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
	})
}

// An owner sends nothing when it enters what it holds.
func TestOwnerAsksNobody(t *testing.T) {
	each(t, func(t *testing.T, w *world, k kind) {
		if !k.reentrant {
			return
		}
		l := k.new(t, w.connect(), "/lock")
		must(t, l.Do(queue.WithOwner(t.Context()), func(ctx context.Context) error {
			heal := w.cut()
			defer heal()
			check(t, "Do", queue.WithMaxWait(ctx, bound), func(ctx context.Context) error {
				return l.Do(ctx, func(context.Context) error { return nil })
			}, nil, 0)
			return nil
		}))
	})
}

// An owner does not enter a semaphore again: each of its calls takes a lease of its own.
func TestOwnerOfSemaphore(t *testing.T) {
	for name, opts := range map[string][]semaphore.Option{"ours": nil, "Curator's": {semaphore.WithCuratorLayout()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				s := sem(2, opts...)(t, w.connect(), "/lock").(*semaphore.Semaphore)
				owner := queue.WithOwner(t.Context())
				must(t, s.Do(owner, func(ctx context.Context) error {
					return s.Do(ctx, func(ctx context.Context) error {
						all, err := s.Contenders(ctx)
						must(t, err)
						if len(all) != 2 {
							t.Errorf("%d leases", len(all))
						}
						if ok, err := s.TryLock(ctx); ok || err != nil {
							t.Errorf("a third of two: %v, %v", ok, err)
						}
						return nil
					})
				}))
			})
		})
	}
}
