package queue_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// dir is that of all contenders.
const dir = "/locks/one"

// The kinds of lock that the tests use.
var (
	mutex = queue.Mutex()
	ask   = queue.Request{Kind: mutex}
	reads = queue.Request{Kind: queue.Reader()}
	write = queue.Request{Kind: queue.Writer()}
)

// world is a bubble, in which all contend in dir.
type world struct{ *bubble.World }

func run(t *testing.T, f func(w world)) {
	t.Helper()
	bubble.Run(t, func(w *bubble.World) {
		w.Make(dir, "") // so that each acquisition sends the same requests
		f(world{w})
	})
}

// queue returns a queue of another process.
func (w world) queue(opts ...session.Option) *queue.Queue {
	w.T.Helper()
	return w.on(w.Connect(opts...))
}

func (w world) on(m *session.Manager) *queue.Queue {
	w.T.Helper()
	q, err := queue.New(m, dir)
	w.Must(err)
	return q
}

// acquire returns a lease of a mutex.
func (w world) acquire(q *queue.Queue) *queue.Lease {
	w.T.Helper()
	return w.take(q, ask)
}

func (w world) take(q *queue.Queue, r queue.Request) *queue.Lease {
	w.T.Helper()
	l, err := q.Acquire(w.Context(), r)
	w.Must(err)
	return l
}

func (w world) release(l *queue.Lease) {
	w.T.Helper()
	w.Must(l.Release(w.Context()))
}

// token returns the token of a lease, which is known after one round trip at most.
func (w world) token(l *queue.Lease) (token int64) {
	w.T.Helper()
	if took := bubble.Took(func() {
		var err error
		token, err = l.Token(w.Context())
		w.Must(err)
	}); took > 0 {
		w.Errorf("the token took %v", took)
	}
	return token
}

// begin begins an Acquire, and returns when that can do nothing but wait.
func (w world) begin(q *queue.Queue, r queue.Request) *bubble.Pending[*queue.Lease] {
	return bubble.Begin(w.World, func(ctx context.Context) (*queue.Lease, error) { return q.Acquire(ctx, r) })
}

// nodes wants so many of them.
func (w world) nodes(when string, n int) {
	w.T.Helper()
	w.WantNodes(when, dir, n)
}

// of matches the requests of a queue's process in dir.
func (w world) of(q *queue.Queue, ops ...zktest.Op) zktest.Match {
	id, any := w.Session(q.Manager()).ID(), zktest.Any(ops...)
	return func(r zktest.Request) bool {
		return r.Session == id && strings.HasPrefix(r.Path, dir) && (len(ops) == 0 || any(r))
	}
}

// sent wants so many requests of each kind, of all processes, for nodes of contenders or the directory.
func (w world) sent(what string, want map[zktest.Op]int) {
	w.T.Helper()
	for op, n := range want {
		if got := w.Count(zktest.On(op, dir)); got != n {
			w.Errorf("%s: %d requests %v, want %d", what, got, op, n)
		}
	}
}

// noWatch wants no watch on the server.
func (w world) noWatch() {
	w.T.Helper()
	if n := w.Watches(); n != 0 {
		w.Errorf("%d watches are left", n)
	}
}

// nameless returns a node's name without its id.
func nameless(node string) string { return strings.TrimLeft(path.Base(node)[len("_c_")+36:], "-") }
