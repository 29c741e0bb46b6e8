package locktest

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// On the shared server of this test binary, in real time, each call takes the lock, keeps a rival out, and releases it. It
// takes the lock again, and the holder hears that its session is lost.
func onSharedServer(t *testing.T, s Subject) {
	proxy := testserver.Proxy(t)
	w := &world{bubble.New(t), s, testserver.Path(t), func(opts ...session.Option) *session.Manager {
		return testserver.Connect(t, proxy.Addr(), opts...)
	}}
	rival := w.rival()
	for i, c := range s.calls {
		p := w.process()
		way := p.ways()[i]
		h := p.take(way)
		w.Want("while it is held", h.err(), nil)
		for _, try := range rival.ways()[len(rival.waiting()):] {
			_, err := try.take(w.Context())
			w.Want(c.name+" keeps a rival out", err, queue.ErrBusy)
		}
		w.Want("release", h.end(), nil)
		rival.holds()()
		h = p.take(way)
		w.Must(proxy.Expire(w.Context(), p.session()))
		zktest.Eventually(w.T, testserver.Patience, "the loss to be known", func() bool { return h.err() != nil })
		w.wantNoCancel(h, session.ErrLost)
		rival.holds()()
	}
}
