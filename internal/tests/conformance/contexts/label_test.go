package contexts

import (
	"context"
	"encoding/json"
	"path"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

const text = "request 42"

// heard are the labels that the hooks of a manager have got.
type heard struct {
	mu              sync.Mutex
	acquires, holds []string
}

func (h *heard) hooks() session.Option {
	return session.WithTrace(session.Trace{
		Acquire: func(ctx context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.acquires = append(h.acquires, a.Label)
			return ctx, nil
		},
		Hold: func(_ context.Context, a session.HoldInfo) func(error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.holds = append(h.holds, a.Label)
			return nil
		},
	})
}

// check compares all of them.
func (h *heard) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.acquires) == 0 || len(h.holds) == 0 {
		t.Error("no hook was called")
	}
	for _, label := range append(h.acquires, h.holds...) {
		if label != text {
			t.Errorf("a hook gets the label %q", label)
		}
	}
	h.acquires, h.holds = nil, nil
}

// labels returns the labels in the nodes of a directory.
func labels(t *testing.T, s *session.Session, dir string) (out []string) {
	t.Helper()
	names, _, err := s.Children(t.Context(), dir)
	must(t, err)
	for _, name := range names {
		if _, ok := queue.ParseNode(name); !ok {
			continue
		}
		data, _, err := s.Get(t.Context(), path.Join(dir, name))
		must(t, err)
		var who struct {
			Label string `json:"label"`
		}
		must(t, json.Unmarshal(data, &who))
		out = append(out, who.Label)
	}
	return out
}

// The label of a context is in the node of what is acquired with it, and hooks get it, by whichever call.
func TestLabel(t *testing.T) {
	each(t, func(t *testing.T, w *world, k kind) {
		var h heard
		l := k.new(t, w.connect(h.hooks()), "/lock")
		s := testserver.Session(t, w.connect())
		held := func(what string) {
			t.Helper()
			h.check(t)
			if k.shares {
				return
			}
			found := 0
			for _, dir := range k.dirs {
				for _, label := range labels(t, s, path.Join("/lock", dir)) {
					found++
					if label != text {
						t.Errorf("%s: a node in %q has the label %q", what, dir, label)
					}
				}
			}
			if found == 0 {
				t.Errorf("%s: no node", what)
			}
		}
		ctx := queue.WithLabel(t.Context(), text)
		inside := func(what string) func(context.Context) error {
			return func(context.Context) error { held(what); return nil }
		}
		must(t, l.Lock(ctx))
		held("Lock")
		must(t, l.Unlock())
		synctest.Wait()
		if ok, err := l.TryLock(ctx); !ok || err != nil {
			t.Fatalf("TryLock: %v, %v", ok, err)
		}
		held("TryLock")
		must(t, l.Unlock())
		synctest.Wait()
		must(t, l.Do(ctx, inside("Do")))
		synctest.Wait()
		if ok, err := l.TryDo(ctx, inside("TryDo")); !ok || err != nil {
			t.Fatalf("TryDo: %v, %v", ok, err)
		}
		synctest.Wait()
		if l, ok := l.(leaser); ok {
			_, err := l.Acquire(ctx)
			must(t, err)
			held("Acquire")
		}
	})
	// A candidate's node has its id, which Curator reads. Hooks have the label.
	t.Run("election", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			var h heard
			e := made[*election.Election](t)(election.New(w.connect(h.hooks()), "/e"))
			err := e.Run(queue.WithLabel(t.Context(), text), func(context.Context) error { h.check(t); return context.Canceled })
			wantErr(t, "Run", err, context.Canceled)
		})
	})
}
