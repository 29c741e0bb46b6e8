package locktest

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// onSharedServer is the short form of some cases, on the shared server of this test binary and in real time.
func onSharedServer(t *testing.T, s Subject) {
	server := testserver.Server(t)
	w := begin(t, s, testserver.Path(t))
	w.dump = func() (string, error) { return server.Word(t.Context(), 0, "dump") }
	w.dial = func(opts ...session.Option) *session.Manager { return testserver.Connect(t, server.Addr(0), opts...) }
	p, rival := w.process(), w.rival()

	// They exclude each other, a try is busy, and a call that is cancelled leaves.
	for _, way := range p.ways() {
		h := p.take(way)
		before := w.nodes()
		next := rival.ways()[0].begin(w.Context())
		zktest.Eventually(w, testserver.Patience, "the rival to wait", func() bool { return len(added(before, w.nodes())) > 0 })
		if _, err, returned := next.now(); returned {
			w.Fatalf("%s: a rival's acquisition returns %v", way.name, err)
		}
		w.want("release", h.end(), nil)
		h, err := next.wait()
		w.must("the rival's acquisition", err)
		before = w.nodes()
		ctx, cancel := context.WithCancel(w.Context())
		call := way.begin(ctx)
		want := queue.ErrBusy
		if !way.try {
			zktest.Eventually(w, testserver.Patience, "a node of the waiter", func() bool { return len(added(before, w.nodes())) > 0 })
			want = context.Canceled
			cancel()
		}
		_, err = call.wait()
		w.want(way.name, err, want)
		cancel()
		w.want("the rival's release", h.end(), nil)
	}

	// A holder hears that its session is lost.
	proxy := testserver.Proxy(t)
	w.dial = func(opts ...session.Option) *session.Manager { return testserver.Connect(t, proxy.Addr(), opts...) }
	for i := range p.ways() {
		behind := w.process()
		h := behind.take(behind.ways()[i])
		w.must("Expire", proxy.Expire(w.Context(), behind.session()))
		zktest.Eventually(w, testserver.Patience, "the loss to be known", func() bool { return h.err() != nil })
		w.want("the lost hold", h.err(), session.ErrLost)
		w.want("its release", h.end(), session.ErrLost)
		rival.holds()()
		w.must("Close", behind.m.Close())
	}
	w.must("Close", p.m.Close())
	w.must("Close of the rival", rival.m.Close())
	w.gone("after Close", 0)
}
