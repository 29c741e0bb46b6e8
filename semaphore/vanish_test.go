package semaphore_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

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
	testserver.Delete(t, dir, "locks", testserver.Children(t, dir+"/locks")[0])
	wantErr(t, "Acquire", receive(t, "Acquire", result), context.DeadlineExceeded)
	release(t, held)
}
