package locktest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
)

// silences are the ways in which a release gets no answer, and for how long Unlock waits for one.
var silences = map[string]struct {
	begin, end func(*world)
	wait       time.Duration
}{
	"server stands still": {func(w *world) { w.HoldServer(0) }, func(w *world) { w.ReleaseServer(0) }, time.Second},
	"no connection":       {func(w *world) { w.Cut() }, func(w *world) { w.Refuse(false) }, 0},
}

// Unlock and the end of a Do wait for the answer for a second, and for no connection. Release of a lease waits for as
// long as its context lasts, and says that the answer has not come. The lock is free once the servers answer again.
func releaseWithoutAnswer(t *testing.T, s Subject) {
	const patience = 3 * time.Second
	for what, silence := range silences {
		t.Run(what, func(t *testing.T) {
			eachCall(t, s, func(w *world, c call) {
				p, rival := w.process(), w.rival()
				h := p.take(c.of(p))
				next := rival.waits(w.Context(), rival.ways()[0])[0]
				w.Pass(time.Second)
				was := p.session()
				silence.begin(w)
				start, want := time.Now(), silence.wait
				if h.release != nil {
					ctx, cancel := context.WithTimeout(w.Context(), patience)
					err := h.release(ctx)
					w.Want("Release", err, queue.ErrReleasePending)
					w.Want("Release", err, context.DeadlineExceeded)
					cancel()
					want = patience
					w.Want("a second Release", h.end(), queue.ErrReleased)
				} else {
					w.Want("release", h.end(), nil)
				}
				if s.Async && h.release == nil {
					want = 0
				}
				if d := time.Since(start); d < want || d > want+time.Millisecond {
					w.Errorf("the release waits for %v, want %v", d, want)
				}
				if h.err() == nil {
					w.Error("held after the release")
				}
				if _, err, returned := next.now(); returned {
					w.Errorf("the rival's acquisition returns %v before the release can have happened", err)
				}
				silence.end(w)
				after, err := next.wait()
				w.Must(err)
				w.Want("the rival's release", after.end(), nil)
				if p.session() != was {
					w.Error("another session")
				}
				w.usable(p, rival)
			})
		})
	}
}

// A request to give the lock up tells the holder, and takes nothing from it. It ends the context of a Do, whose error
// then says why. The place is not kept.
func askHolder(t *testing.T, s Subject) {
	eachCall(t, s, func(w *world, c call) {
		for i, end := range []error{nil, errors.New("failure of the function"), context.Canceled} {
			if s.Campaigns && errors.Is(end, context.Canceled) {
				continue // the error of a term keeps what wraps that
			}
			p := w.process()
			h := p.take(c.of(p))
			w.Pass(10 * time.Millisecond) // it watches its node by now
			w.Write(w.nodes()[i%s.Nodes], queue.RevokeMessage)
			synctest.Wait()
			w.wantAsked(h)
			w.wantNodes("after the request", s.Nodes)
			switch {
			case h.finish == nil || end == nil && !s.Campaigns:
				w.Want("release", h.end(), nil)
			case errors.Is(end, context.Canceled):
				w.wantNoCancel(h, s.asked())
			default:
				h.finish <- end
				err := h.end()
				w.Want(c.name, err, s.asked())
				if end != nil {
					w.Want(c.name, err, end)
				}
			}
			synctest.Wait()
			if n := len(w.nodes()); n != 0 && s.Nodes == 1 {
				w.Errorf("%d nodes after the release", n)
			}
			w.usable(p)
		}
	})
}

// A request that came while a call waited is heard of at the grant. A Do does not call its function then.
func askWaiter(t *testing.T, s Subject) {
	if s.Campaigns {
		return
	}
	eachCall(t, s, func(w *world, c call) {
		if c.try {
			return
		}
		p, rival := w.process(), w.rival()
		release := rival.holds()
		before := w.nodes()
		call := p.waits(w.Context(), c.of(p))[0]
		w.Write(added(before, w.nodes())[0], queue.RevokeMessage)
		w.Pass(time.Second)
		release()
		h, err := call.wait()
		if c.name == "Do" {
			w.Want("Do", err, queue.ErrRevoked)
		} else {
			w.Must(err)
			w.wantAsked(h)
			w.Want("release", h.end(), nil)
		}
		w.usable(p, rival)
	})
}

// wantAsked wants a holder that has heard that another client asks for its lock, and that still holds it.
func (w *world) wantAsked(h *hold) {
	w.Helper()
	if h.finish != nil {
		w.Want("cause of the end of the function's context", context.Cause(h.ctx), w.subject.asked())
		return
	}
	w.Want("held after the request", h.err(), nil)
	if h.revoked != nil && !expect.Closed(h.revoked) {
		w.Error("the lease does not tell that another client asks for the lock")
	}
}

func (s Subject) asked() error {
	if s.Asked != nil {
		return s.Asked
	}
	return queue.ErrRevoked
}
