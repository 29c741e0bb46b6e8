package locktest

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Some cases hold on the shared server of this test binary, in real time. So a holder hears that its session is lost.
func onSharedServer(t *testing.T, s Subject) {
	server := testserver.Server(t)
	proxy := testserver.Proxy(t)
	for _, c := range []struct {
		name string
		run  func(*world)
	}{{"take and release", takeAndRelease}, {"context", contextBoundsWait}, {"busy", busyTries}, {"loss", func(w *world) {
		for i := range w.process().ways() {
			p := w.process()
			h := p.take(p.ways()[i])
			w.must("Expire", proxy.Expire(w.Context(), p.session()))
			zktest.Eventually(w, testserver.Patience, "the loss to be known", func() bool { return h.err() != nil })
			w.wantNoCancel(h, session.ErrLost)
			w.rival().holds()()
		}
	}}} {
		t.Run(c.name, func(t *testing.T) {
			w := begin(t, s, testserver.Path(t))
			w.dump = func() (string, error) { return server.Word(t.Context(), 0, "dump") }
			w.dial = func(opts ...session.Option) *session.Manager { return testserver.Connect(t, proxy.Addr(), opts...) }
			c.run(w)
		})
	}
}
