package locktest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// closed wants every call of a closed manager to say so.
func (p *process) closed() {
	p.Helper()
	for _, way := range p.ways() {
		_, err := way.take(p.Context())
		p.Want(way.name+" of a closed manager", err, session.ErrClosed)
	}
}

// Close ends calls that wait, and removes their nodes.
func closeWaiting(w *world) {
	p, rival := w.process(), w.rival()
	release := rival.holds()
	nodes := len(w.nodes())
	calls := p.waits(w.Context(), p.waiting()...)
	start := time.Now()
	w.Want("Close", p.m.Close(), nil)
	synctest.Wait()
	for i, way := range p.waiting() {
		_, err, returned := calls[i].now()
		if !returned {
			w.Fatalf("%s waits after Close", way.name)
		}
		w.Want(way.name, err, session.ErrClosed)
	}
	if d := time.Since(start); d != 0 {
		w.Errorf("Close takes %v", d)
	}
	w.wantNodes("after Close, of the rival", nodes)
	p.closed()
	release()
	w.usable(rival)
}

// Close releases what is held, and the holder hears of it.
func closeHeld(t *testing.T, s Subject) {
	eachCall(t, s, func(w *world, c call) {
		p := w.process()
		h := p.take(c.of(p))
		w.Want("Close", p.m.Close(), nil)
		synctest.Wait()
		if h.err() == nil {
			w.Error("held after Close")
		}
		w.wantNodes("after Close", 0)
		w.rival().holds()()
		err := h.end()
		w.Want("release", err, session.ErrClosed)
		if errors.Is(err, session.ErrLost) {
			w.Errorf("the error %v of a hold that Close has ended matches a loss", err)
		}
		p.closed()
	})
}
