package core

import (
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
)

// One goroutine calls thousands of functions that come at once, in order.
func TestErrands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e errands
		most, n := 0, 0
		for i := range 8000 {
			e.add(func() {
				if i%100 == 0 {
					most = max(most, goroutines.In("core.(*errands).run"))
				}
				if i != n {
					t.Errorf("%d comes after %d others", i, n)
				}
				n++
			})
		}
		synctest.Wait()
		if n != 8000 || most != 1 || e.running {
			t.Errorf("%d calls, %d goroutines, running %v", n, most, e.running)
		}
	})
}

// While there is no connection, one goroutine waits to delete thousands of nodes, and the end of the session ends all.
func TestRemovalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		done := 0
		var all []<-chan struct{}
		for range 8000 {
			all = append(all, s.RemoveAfter(t.Context(), "/n", nil).Done())
		}
		synctest.Wait()
		if n := goroutines.In("core.(*"); n != 1 {
			t.Errorf("%d goroutines, want one", n)
		}
		_ = s.mark(lossError(1, lossExpired))
		s.end()
		synctest.Wait()
		for _, c := range all {
			select {
			case <-c:
				done++
			default:
			}
		}
		if done != len(all) {
			t.Errorf("%d of %d removals have ended", done, len(all))
		}
	})
}
