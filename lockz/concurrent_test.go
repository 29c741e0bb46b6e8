package lockz_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Pages are asked for while locks of all kinds come and go and the connection breaks. In the end the
// page is empty.
func TestConcurrentSafe(t *testing.T) {
	const workers, times = 6, 10
	proxy, dir := testserver.Proxy(t), testserver.Path(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithBackoff(time.Millisecond, time.Millisecond))
	page := lockz.Handler(m)
	locks := []*zklock.Mutex{mutex(t, m, dir+"/a"), mutex(t, m, dir+"/b", zklock.WithLocalHandover(3)), mutex(t, m, dir+"/c", zklock.WithLazyRelease(time.Second))}
	stop := make(chan struct{})
	var readers, g errgroup.Group
	for i := range 2 {
		readers.Go(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				if code := get(page, []string{"", "?format=json"}[i], "").Code; code != http.StatusOK {
					t.Errorf("status %d", code)
				}
				lockz.Handler(m)
			}
		})
	}
	for i := range workers {
		g.Go(func() error {
			for j := range times {
				ctx, cancel := context.WithTimeout(queue.WithLabel(t.Context(), "worker"), testserver.Patience)
				if (i+j)%4 == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Millisecond) // and gives up
				}
				lease, err := locks[(i+j)%len(locks)].Acquire(ctx)
				if err == nil {
					_ = lease.Release(t.Context())
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
				if i == 0 && j == 5 {
					proxy.Disconnect()
				}
			}
			return nil
		})
	}
	must(t, g.Wait())
	close(stop)
	must(t, readers.Wait())
	zktest.Eventually(t, testserver.Patience, "an empty page", func() bool {
		m := pageOf(t, page).Managers[0]
		return len(m.Holds)+len(m.Waits) == 0
	})
}
