package semaphore_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A semaphore that is not used any more does not keep the session in memory that it has used last.
func TestEndedSessionIsFreed(t *testing.T) {
	proxy := testserver.Proxy(t)
	m := behind(t, proxy)
	s := newSem(t, m, testserver.Path(t), 2)
	release(t, take(t, s, 1))
	old := weak.Make(testserver.Session(t, m))
	func() { // so that no variable has the session
		live := testserver.Session(t, m)
		must(t, proxy.Expire(patient(t), live.ID()))
		<-live.Done()
	}()
	testserver.Session(t, m) // the next one
	zktest.Eventually(t, testserver.Patience, "the end of the session in memory", func() bool {
		runtime.GC()
		return old.Value() == nil
	})
	runtime.KeepAlive(s)
}
