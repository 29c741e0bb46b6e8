package locktest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

// Each call takes a lock that is free, and its end releases it. Meanwhile a rival has to wait.
func takeAndRelease(w *world) {
	p, rival := w.process(), w.rival()
	if p.lock.Held != nil && p.lock.Held() {
		w.Error("held at first")
	}
	for _, way := range p.ways() {
		h := p.take(way)
		w.want("while it is held", h.err(), nil)
		if n := len(w.nodes()); n != w.subject.Nodes {
			w.Errorf("%s: %d nodes, want %d", way.name, n, w.subject.Nodes)
		}
		c := rival.waits(w.Context(), rival.ways()[0])[0]
		w.pass(time.Second)
		if _, err, returned := c.now(); returned {
			w.Fatalf("%s: a rival's acquisition returns %v", way.name, err)
		}
		w.want("release", h.end(), nil)
		if h.err() == nil {
			w.Errorf("%s: held after its release", way.name)
		}
		h, err := c.wait()
		w.must("the rival's acquisition", err)
		w.want("the rival's release", h.end(), nil)
	}
	w.gone("in the end", 0)
}

// A lock stays held when the context of the call ends, but for that of a Do, whose function it bounds too.
func contextBoundsWait(w *world) {
	p := w.process()
	for _, way := range p.ways() {
		ctx, cancel := context.WithCancel(w.Context())
		h, err := way.take(ctx)
		w.must(way.name, err)
		cancel()
		w.pass(time.Second)
		if h.finish != nil {
			w.want("context of the function", h.ctx.Err(), context.Canceled)
			h.finish <- h.ctx.Err()
			w.want(way.name, h.end(), context.Canceled)
			continue
		}
		w.want(way.name+" after its context has ended", h.err(), nil)
		w.want("release", h.end(), nil)
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
		start := time.Now()
		_, err := way.take(w.Context())
		w.want(way.name, err, queue.ErrBusy)
		if d := time.Since(start); d > 250*time.Millisecond && w.server != nil {
			w.Errorf("%s takes %v to say that the lock is busy", way.name, d)
		}
		w.gone(way.name, nodes)
	}
	release()
	w.usable(p, rival)
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
			if got := recover(); got != failure {
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
	w.want("Do", p.lock.Do(w.Context(), func(context.Context) error { return failure }), failure)
	w.usable(p, w.rival())
}
