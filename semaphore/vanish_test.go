package semaphore_test

import (
	"context"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The directory vanishes with its children while a waiter sets its watches. The waiter has lost its place, and takes
// another.
func TestDirectoryVanishesWhileWatching(t *testing.T) {
	// One try of two comes at the right moment.
	for range 50 {
		if vanishWhileWatching(t) {
			return
		}
	}
	t.Error("the directory never vanished at the right moment")
}

// vanishWhileWatching reports whether the directory vanished at the right moment: the gets for
// the waiter's own node and for the directory are sent together, in either order.
func vanishWhileWatching(t *testing.T) bool {
	t.Helper()
	dir := testserver.Path(t)
	persistent(t, dir, "")
	holder := take(t, newSem(t, connect(t), dir, 1), 1)
	proxy := testserver.Proxy(t)
	m := behind(t, proxy)
	testserver.Session(t, m)
	var own atomic.Bool // the waiter watches its own node, or is about to
	fault := proxy.HoldRequest(func(r zktest.Request) bool {
		if r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, dir+"/") && path.Base(r.Path) != path.Base(holder.Path()) {
			own.Store(true)
		}
		return r.Op == zktest.OpGetData && r.Path == dir && own.Load()
	})
	defer fault.Release()
	c := enter(t, newSem(t, m, dir, 1), 1)
	if !hit(t, proxy, dir, fault) {
		fault.Release()
		release(t, holder)
		release(t, c.get(t))
		return false
	}
	for _, name := range testserver.Children(t, dir) {
		testserver.Delete(t, dir, name)
	}
	testserver.Delete(t, dir)
	fault.Release()
	release(t, c.get(t))
	return true
}

// hit reports whether the fault has struck, or the directory's data was read twice without it.
func hit(t *testing.T, proxy *zktest.Proxy, dir string, fault *zktest.Fault) (yes bool) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the directory to be watched", func() bool {
		select {
		case <-fault.Hit():
			yes = true
			return true
		default:
			return proxy.Count(zktest.On(zktest.OpGetData, dir)) >= 2
		}
	})
	return yes
}

// deadline is a context that ends on demand, like one whose deadline passes.
type deadline struct {
	context.Context
	over chan struct{}
}

func (d *deadline) Done() <-chan struct{} { return d.over }
func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// The caller's deadline passes right after the gate was lost. The call returns the caller's error, and not that of the wait
// that ended with the gate.
func TestTimeRunsOutAfterGateLost(t *testing.T) {
	dir := testserver.Path(t)
	ctx := &deadline{context.Background(), make(chan struct{})}
	m := connect(t, session.WithTrace(session.Trace{
		Acquire: func(c context.Context, a session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return c, func(session.AcquireResult) {
				if a.Kind == "semaphore" {
					close(ctx.over)
				}
			}
		},
	}))
	held := take(t, curators(t, dir, 1), 1)
	s := newSem(t, m, dir, 1, semaphore.WithCuratorLayout())
	result := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx)
		result <- err
	}()
	nodes(t, dir, 2, 1)
	testserver.Delete(t, dir, "locks", oldest(t, dir+"/locks"))
	wantErr(t, "Acquire", receive(t, "Acquire", result), context.DeadlineExceeded)
	release(t, held)
}
