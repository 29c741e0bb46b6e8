package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	semaphore "github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A call makes the directory and is cancelled before it has a node in there. The session lasts. Servers before 3.10 keep a
// container that never had a child, so the session gives the directory back. Time is virtual.
func TestDirectoryMadeInVain(t *testing.T) {
	const dir = "/limits/x"
	curators := semaphore.WithCuratorLayout()
	for _, c := range []struct {
		name string
		opts []semaphore.Option
		made string // the directory
		call func(context.Context, *semaphore.Semaphore) error
	}{
		{"Acquire", nil, dir, func(ctx context.Context, s *semaphore.Semaphore) error { return s.Lock(ctx) }},
		{"Acquire in Curator's layout", []semaphore.Option{curators}, dir + "/locks", func(ctx context.Context, s *semaphore.Semaphore) error { return s.Lock(ctx) }},
		{"Resize up", nil, dir, func(ctx context.Context, s *semaphore.Semaphore) error { return s.Resize(ctx, 9) }},
		{"Resize down", nil, dir, func(ctx context.Context, s *semaphore.Semaphore) error { return s.Resize(ctx, 1) }},
		{"ResetLimit", nil, dir, func(ctx context.Context, s *semaphore.Semaphore) error { return s.ResetLimit(ctx) }},
	} {
		for _, w := range []struct {
			name  string
			fault func(*zktest.Server) *zktest.Fault
		}{
			{"its reply is lost", func(s *zktest.Server) *zktest.Fault {
				return s.CutAfterCommit(zktest.On(zktest.OpCreateContainer, c.made))
			}},
			{"its reply is late", func(s *zktest.Server) *zktest.Fault {
				return s.HoldReply(zktest.On(zktest.OpCreateContainer, c.made))
			}},
		} {
			t.Run(c.name+", "+w.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server, err := zktest.New()
					must(t, err)
					defer server.Close()
					m := testserver.Connect(t, "zookeeper", session.WithTimeout(long), session.WithDialer(server.Dialer()))
					release(t, take(t, newSem(t, m, "/limits/other", 1), 1)) // the manager knows containers, and /limits is there
					id := testserver.Session(t, m).ID()
					s := newSem(t, m, dir, 3, c.opts...)
					fault := w.fault(server)
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- c.call(ctx, s) }()
					<-fault.Hit()
					cancel()
					wantErr(t, c.name, <-ended, context.Canceled)
					fault.Release()
					time.Sleep(3 * long)
					server.ReapContainers()
					on := testserver.Session(t, m)
					if on.ID() != id {
						t.Fatal("the session was lost")
					}
					stat, err := on.Exists(t.Context(), c.made)
					must(t, err)
					if stat != nil {
						t.Errorf("%s is still there, and no server will remove it", c.made)
					}
				})
			})
		}
	}
}
