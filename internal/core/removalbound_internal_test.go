package core

import (
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
)

// While there is no connection, no goroutine waits to delete thousands of nodes, and the end of the session ends all.
func TestRemovalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		done := 0
		var all []<-chan struct{}
		for range 8000 {
			all = append(all, s.Remove(t.Context(), "/n").Done())
		}
		synctest.Wait()
		if n := goroutines.In("core.(*"); n != 0 {
			t.Errorf("%d goroutines, want none", n)
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
