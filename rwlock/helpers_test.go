package rwlock_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// dir is the path of the lock.
const dir = "/locks/prices"

var lazy = rwlock.WithLazyRelease(5 * time.Second)

// world is a bubble, in which locks are at dir.
type world struct{ *bubble.World }

func run(t *testing.T, f func(w world)) {
	t.Helper()
	bubble.Run(t, func(w *bubble.World) {
		w.Make(dir, "") // so that requests are the same each time
		f(world{w})
	})
}

// lock returns a lock of another process.
func (w world) lock(opts ...rwlock.Option) *rwlock.RWMutex {
	w.T.Helper()
	return w.on(w.Connect(), opts...)
}

func (w world) on(m *session.Manager, opts ...rwlock.Option) *rwlock.RWMutex {
	w.T.Helper()
	rw, err := rwlock.New(m, dir, opts...)
	w.Must(err)
	return rw
}

// begin begins to lock, and returns when that can do nothing but wait.
func (w world) begin(lock func(context.Context) error) *bubble.Call {
	return w.Go(func() error { return lock(w.Context()) })
}

// all wants no error of calls that are made one after another.
func all(calls ...func() error) error {
	for _, call := range calls {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// picture wants these contenders in the queue, in order: W or R, with a star for a holder. Nodes of one number come in any
// order.
func (w world) picture(wants ...string) {
	w.T.Helper()
	w.Pass(0)
	contenders, err := w.lock().Contenders(w.Context())
	w.Must(err)
	var words []string
	for _, c := range contenders {
		n, _ := queue.ParseNode(path.Base(c.Path))
		word := map[string]string{queue.PrefixWrite: "W", queue.PrefixRead: "R"}[n.Prefix]
		if c.Holder {
			word += "*"
		}
		words = append(words, word)
	}
	got := strings.Join(words, " ")
	for _, want := range wants {
		if got == want {
			return
		}
	}
	w.Fatalf("in the queue: %s; want %q", got, wants)
}

// held wants the sides of a lock to be held, or not.
func (w world) held(rw *rwlock.RWMutex, write, read bool) {
	w.T.Helper()
	if rw.Held() != write || rw.Reader().Held() != read {
		w.Errorf("held: write %v, read %v; want %v and %v", rw.Held(), rw.Reader().Held(), write, read)
	}
}

// try wants a try to have this result.
func (w world) try(what string, try func(context.Context) (bool, error), want bool) {
	w.T.Helper()
	if got, err := try(w.Context()); got != want || err != nil {
		w.Fatalf("%s: %v, %v; want %v", what, got, err, want)
	}
}

// of matches the requests of a process for the lock.
func (w world) of(m *session.Manager, match zktest.Match) zktest.Match {
	id := w.Session(m).ID()
	return func(r zktest.Request) bool { return r.Session == id && strings.HasPrefix(r.Path, dir) && match(r) }
}

func anything(zktest.Request) bool { return true }

func nothing(context.Context) error { return nil }

// refused wants all ways to write to be refused.
func (w world) refused(ctx context.Context, rw *rwlock.RWMutex, want error) {
	w.T.Helper()
	w.Want("Lock", rw.Lock(ctx), want)
	got, err := rw.TryLock(ctx)
	w.Want("TryLock", err, want)
	called := false
	w.Want("Do", rw.Do(ctx, func(context.Context) error { called = true; return nil }), want)
	if got || called {
		w.Errorf("TryLock: %v; the function of Do was called: %v", got, called)
	}
}

// nodeOf returns the node of one side, which is alone there.
func (w world) nodeOf(prefix string) string {
	w.T.Helper()
	for _, node := range w.Nodes(dir) {
		if strings.Contains(node, prefix) {
			return node
		}
	}
	w.Must(errors.New("no node with " + prefix))
	return ""
}
