package locktest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// Each call takes a lock that is free, and its end releases it. Meanwhile a rival has to wait.
func takeAndRelease(w *world) {
	p, rival := w.process(), w.rival()
	if p.lock.Held != nil && p.lock.Held() {
		w.Error("held at first")
	}
	if p.lock.Done != nil && !expect.Closed(p.lock.Done()) {
		w.Error("Done is open without a hold")
	}
	for _, way := range p.ways() {
		h := p.take(way)
		w.Want("while it is held", h.err(), nil)
		if h.done != nil && expect.Closed(h.done) {
			w.Errorf("%s: Done is closed while it is held", way.name)
		}
		w.wantNodes(way.name, w.subject.Nodes)
		c := rival.waits(w.Context(), rival.ways()[0])[0]
		w.Pass(time.Second)
		if _, err, returned := c.now(); returned {
			w.Fatalf("%s: a rival's acquisition returns %v", way.name, err)
		}
		w.Want("release", h.end(), nil)
		if h.err() == nil {
			w.Errorf("%s: held after its release", way.name)
		}
		h, err := c.wait()
		w.Must(err)
		w.Want("the rival's release", h.end(), nil)
	}
	w.gone("in the end", 0)
}

// A lock stays held when the context of the call ends, but for that of a Do, whose function it bounds too.
func contextBoundsWait(w *world) {
	p := w.process()
	for _, way := range p.ways() {
		ctx, cancel := context.WithCancelCause(w.Context())
		h, err := way.take(ctx)
		w.Must(err)
		why := errors.New("the reason of the caller")
		cancel(why)
		w.Pass(time.Second)
		w.wantNodes(way.name, w.subject.Nodes)
		var want error
		if h.finish == nil {
			w.Want(way.name+" after its context has ended", h.err(), nil)
		} else {
			w.Want("cause of the end of the function's context", context.Cause(h.ctx), why)
			want = h.ctx.Err()
			h.finish <- want
		}
		w.Want("release", h.end(), want)
		if n := len(w.nodes()); n != 0 && !w.subject.Async && !w.subject.KeepsPlace {
			w.Errorf("%s: %d nodes when the release has returned", way.name, n)
		}
	}
	w.gone("in the end", 0)
}

// A try of a lock that is held says so, and leaves nothing behind.
func busyTries(w *world) {
	p, rival := w.process(), w.rival()
	release := rival.holds()
	nodes := len(w.nodes())
	for _, way := range p.ways() {
		if !way.try {
			continue
		}
		start, written := time.Now(), p.writes()
		w.Want(way.name, expect.Err(way.take(w.Context())), queue.ErrBusy)
		if d := time.Since(start); d > 250*time.Millisecond {
			w.Errorf("%s takes %v to say that the lock is busy", way.name, d)
		}
		w.gone(way.name, nodes)
		if n := p.writes() - written; n > 0 && !w.subject.KeepsPlace { // a place that may be kept goes only for a node
			w.Errorf("%s: %d writes to say that the lock is busy", way.name, n)
		}
	}
	p.notHeld()
	release()
	w.usable(p, rival)
}

// writes returns how many nodes the process has made so far, or has tried to.
func (p *process) writes() int {
	mine, creates := of(p.session()), zktest.Any(zktest.OpCreate, zktest.OpCreate2, zktest.OpMulti)
	return p.Count(func(r zktest.Request) bool { return mine(r) && creates(r) })
}

// Of many processes that try at the same time, some get the lock, and no more than can hold it. The others leave nothing.
// Those that try several locks can keep each other out.
func manyTries(w *world) {
	const many = 8
	var processes []*process
	for range many {
		processes = append(processes, w.process())
	}
	var calls []taking
	for i, p := range processes {
		tries := p.ways()[len(p.waiting()):]
		calls = append(calls, tries[i%len(tries)].begin(w.Context()))
	}
	var winners []*hold
	for _, c := range calls {
		if h, err := c.wait(); err == nil {
			winners = append(winners, h)
		} else {
			w.Want("a try that loses", err, queue.ErrBusy)
		}
	}
	if n, most := len(winners), w.subject.Holders; n == 0 && w.subject.Nodes == 1 || most > 0 && n > most {
		w.Errorf("%d of %d tries got the lock", n, many)
	}
	w.gone("beside the winners", len(winners)*w.subject.Nodes)
	for _, h := range winners {
		w.Want("release", h.end(), nil)
	}
	w.usable(processes...)
}

// A function that panics, or that ends its goroutine, unlocks. Its panic goes on.
func panicking(w *world) {
	p := w.process()
	if p.lock.Do == nil {
		return
	}
	failure := errors.New("failure of the function")
	func() {
		defer func() {
			if got := recover(); got != failure { //nolint:errorlint // the value of the panic itself
				w.Errorf("panic %v, want that of the function", got)
			}
		}()
		_ = p.lock.Do(w.Context(), func(context.Context) error { panic(failure) })
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.lock.Do(w.Context(), func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-ended
	w.Want("Do", p.lock.Do(w.Context(), func(context.Context) error { return failure }), failure)
	w.usable(p, w.rival())
}
