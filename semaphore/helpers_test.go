package semaphore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// dir is the path of the semaphore, and those of Curator's layout.
const (
	dir    = "/limits/a"
	leases = dir + "/leases"
	locks  = dir + "/locks"
)

var curators = semaphore.WithCuratorLayout()

// world is a bubble, in which semaphores are at dir.
type world struct{ *bubble.World }

func run(t *testing.T, f func(w world)) {
	t.Helper()
	bubble.Run(t, func(w *bubble.World) { f(world{w}) })
}

// sem returns a semaphore of another process.
func (w world) sem(limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	w.T.Helper()
	return w.semOn(w.Connect(), limit, opts...)
}

func (w world) semOn(m *session.Manager, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	w.T.Helper()
	s, err := semaphore.New(m, dir, limit, opts...)
	w.Must(err)
	return s
}

// says wants an error whose text has all of words.
func (w world) says(err, target error, words ...string) {
	w.T.Helper()
	w.Want("the call", err, target)
	for _, word := range words {
		if !strings.Contains(fmt.Sprint(err), word) {
			w.Errorf("error %q does not say %q", err, word)
		}
	}
}

// call is an AcquireN under way.
type call = bubble.Pending[*queue.Lease]

// begin begins an AcquireN, and returns when it can do nothing but wait.
func (w world) begin(s *semaphore.Semaphore, n int) *call {
	return bubble.Begin(w.World, func(ctx context.Context) (*queue.Lease, error) { return s.AcquireN(ctx, n) })
}

// take acquires n leases, which must be free.
func (w world) take(s *semaphore.Semaphore, n int) *queue.Lease {
	w.T.Helper()
	l, err := s.TryAcquireN(w.Context(), n)
	w.Must(err)
	return l
}

// busy wants n leases not to be free.
func (w world) busy(s *semaphore.Semaphore, n int) {
	w.T.Helper()
	w.Want(fmt.Sprintf("TryAcquireN of %d", n), expect.Err(s.TryAcquireN(w.Context(), n)), queue.ErrBusy)
}

func (w world) release(all ...*queue.Lease) {
	w.T.Helper()
	for _, l := range all {
		w.Must(l.Err())
		w.Must(l.Release(w.Context()))
	}
}

// resize begins a Resize.
func (w world) resize(s *semaphore.Semaphore, n int) *bubble.Call {
	return w.Go(func() error { return s.Resize(w.Context(), n) })
}

func (w world) limit(s *semaphore.Semaphore, want int) {
	w.T.Helper()
	if got, err := s.Limit(w.Context()); err != nil || got != want {
		w.Errorf("limit %d, %v, want %d", got, err, want)
	}
}

// contenders wants so many of them, in the semaphore's own layout.
func (w world) contenders(n int) {
	w.T.Helper()
	w.WantNodes("of the contenders", dir, n)
}

// of matches requests of a process.
func (w world) of(m *session.Manager, match zktest.Match) zktest.Match {
	id := w.Session(m).ID()
	return func(r zktest.Request) bool { return r.Session == id && match(r) }
}

// writes matches requests for the semaphore that need a quorum.
func writes(r zktest.Request) bool {
	return strings.HasPrefix(r.Path, dir) && !zktest.Any(zktest.OpSync, zktest.OpGetChildren2, zktest.OpGetData, zktest.OpExists)(r)
}

func listing(dir string) zktest.Match {
	return func(r zktest.Request) bool { return r.Op == zktest.OpGetChildren2 && r.Path == dir }
}
