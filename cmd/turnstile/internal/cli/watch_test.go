//go:build linux || darwin || freebsd

package cli

import (
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/semaphore"
)

// Watch tells of contenders that come, hold and leave. Ctrl-C ends it.
func TestWatch(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		r := w.begin(t, "", "watch", w.top+"/l")
		r.prints(t, "free      nobody contends")
		w.own(t, "l/"+uuidA+"lock-0000000000", dataA)
		r.prints(t, `granted   web-3/4711 "request 42"  at once  `+uuidA)
		w.own(t, "l/"+uuidB+"lock-0000000001", dataB)
		r.prints(t, "came      web-4/17  "+uuidB)
		w.own(t, "l/"+uuidC+"lock-0000000002", "10.1.2.3")
		r.prints(t, "came      10.1.2.3")
		w.remove(t, "l/"+uuidC+"lock-0000000002")
		r.prints(t, "left      10.1.2.3  without the lock")
		expect.NoError(t, expect.Err(w.admin.Set(w.top+"/l/"+uuidA+"lock-0000000000", []byte("__REVOKE__"), -1)))
		r.prints(t, "somebody asks it to give the lock up")
		w.remove(t, "l/"+uuidA+"lock-0000000000")
		r.prints(t, "granted   web-4/17  queued")
		r.prints(t, "ended     ")
		w.remove(t, "l/"+uuidB+"lock-0000000001")
		r.prints(t, "ended     web-4/17")
		r.prints(t, "free      nobody contends")
		r.signal(t, syscall.SIGINT)
		if r.wait(t, codeSignal+int(syscall.SIGINT)); r.stderr.String() != "" {
			t.Errorf("stderr %q", r.stderr)
		}
	})
}

func (w *world) remove(t *testing.T, p string) {
	t.Helper()
	expect.NoError(t, w.admin.Delete(w.top+"/"+p, -1))
}

// Watch tells the state at its beginning, and the limit of a semaphore.
func TestWatchSemaphore(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		s, err := semaphore.New(w.manager(t), w.top+"/pool", 3)
		expect.NoError(t, err)
		l, err := s.AcquireN(t.Context(), 2)
		expect.NoError(t, err)
		r := w.begin(t, "", "watch", w.top+"/pool")
		r.prints(t, ", 2 leases  queued ")
		expect.NoError(t, s.Resize(t.Context(), 5))
		r.prints(t, "limit     5 leases, was 3")
		expect.NoError(t, l.Release(t.Context()))
		r.prints(t, "ended ")
	})
}
