package locktest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// A call whose context ends while a request or its answer is on the way, or was lost with the connection, returns at once
// and leaves nothing behind. The lock is free at first, or a rival holds it until the call can do nothing but wait.
func cancelAtEachRequest(t *testing.T, s Subject) {
	for _, busy := range []bool{false, true} {
		walk(t, s, busy, append(held, cut...), func(w *world, c call, arm func(*process) *zktest.Fault) {
			cancelOne(w, c, busy, false, arm)
		})
	}
	t.Run("and a break after that", func(t *testing.T) {
		walk(t, s, false, held[1:], func(w *world, c call, arm func(*process) *zktest.Fault) { cancelOne(w, c, false, true, arm) })
	})
}

// cancelOne cancels a call when its fault has struck. The connection breaks after that if breaks is true, before the answer
// has come.
func cancelOne(w *world, c call, busy, breaks bool, arm func(*process) *zktest.Fault) {
	p, rival := w.process(), w.rival()
	release := func() {}
	if busy {
		release = rival.holds()
	}
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	fault := arm(p)
	call := c.of(p).begin(ctx)
	synctest.Wait()
	if !hit(fault) && busy && !c.try {
		release()
		release = func() {}
		synctest.Wait()
	}
	h, err, returned := call.now()
	if !returned {
		cancel()
		synctest.Wait()
		if h, err, returned = call.now(); !returned {
			w.Fatal("does not return when its context ends")
		}
		switch {
		case h != nil:
			w.Error("took the lock when its context had ended")
		case c.try && busy && errors.Is(err, queue.ErrBusy): // it knew that before
		default:
			w.Want("the cancelled call", err, context.Canceled)
		}
	} else if err != nil && !(busy && c.try) {
		w.Errorf("returned %v before its context has ended", err)
	}
	if breaks {
		w.Disconnect()
	}
	fault.Release()
	if h != nil {
		w.Want("release", h.end(), nil)
	}
	release()
	w.gone("after a cancelled call", 0)
	w.usable(p, rival)
}

// A call whose context ends at the moment of the grant returns either, and what it returns is true.
func cancelAtGrant(w *world) {
	p, rival := w.process(), w.rival()
	for range 10 {
		for _, way := range p.waiting() {
			release := rival.holds()
			ctx, cancel := context.WithCancel(w.Context())
			c := p.waits(ctx, way)[0]
			go cancel()
			release()
			if h, err := c.wait(); err != nil {
				w.Want(way.name, err, context.Canceled)
			} else {
				_ = h.end() // which is the error of the function for a Do
			}
			w.gone(way.name, 0)
		}
	}
	w.usable(p, rival)
}

// A call whose context has ended sends nothing.
func endedContext(w *world) {
	p := w.process()
	ended, cancel := context.WithCancel(w.Context())
	cancel()
	w.ResetRequests()
	for _, way := range p.ways() {
		w.Want(way.name, expect.Err(way.take(ended)), context.Canceled)
	}
	synctest.Wait()
	expect.Requests(w.T, "calls whose context had ended", w.Server, of(p.session()), 0)
	p.notHeld()
}

// A call waits no longer than WithMaxWait says, and its error says so. What it does under the lock is not bounded, nor
// are the calls in that. If there is no connection the bound holds for tries too.
func maxWait(w *world) {
	if w.subject.Campaigns {
		return
	}
	const most = 3 * time.Second
	p, rival := w.process(), w.rival()
	bounded := queue.WithMaxWait(w.Context(), most)
	ended := func(way way, within time.Duration) {
		w.Helper()
		start := time.Now()
		_, err := way.take(bounded)
		w.Want(way.name, err, queue.ErrMaxWait)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			w.Errorf("%s: the error %v matches that of a context", way.name, err)
		}
		if d := time.Since(start); d < within || d > within+time.Millisecond {
			w.Errorf("%s: waited for %v, want %v", way.name, d, within)
		}
	}
	release := rival.holds()
	nodes := len(w.nodes())
	for _, way := range p.waiting() {
		ended(way, most)
		w.gone(way.name, nodes)
	}
	release()
	for _, way := range p.ways() {
		h, err := way.take(bounded)
		w.Must(err)
		if h.ctx != nil {
			if _, bounded := queue.MaxWait(h.ctx); bounded {
				w.Errorf("%s: the calls under the lock are bounded", way.name)
			}
		}
		w.Pass(2 * most)
		w.Want("held for longer", h.err(), nil)
		w.Want("release", h.end(), nil)
		w.gone(way.name, 0)
	}
	w.Refuse(true)
	w.Disconnect()
	synctest.Wait()
	for _, way := range p.ways() {
		ended(way, most)
	}
	w.Refuse(false)
	w.usable(p, rival)
}
