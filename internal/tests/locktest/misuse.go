package locktest

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Bad arguments are refused, before anything is sent.
func badArguments(w *world) {
	p := w.process()
	for _, bad := range []string{"", "locks", "/locks/", "/locks//one", "/locks/../one", "/locks/\x00"} {
		w.Want(fmt.Sprintf("New at %q", bad), expect.Err(w.subject.New(p.m, bad)), session.ErrInvalid)
	}
	_, err := w.subject.New(nil, path)
	w.Want("New without a manager", err, session.ErrInvalid)
	if p.lock.Do != nil {
		w.Want("Do of nil", p.lock.Do(w.Context(), nil), session.ErrInvalid)
	}
	if p.lock.TryDo != nil {
		w.Want("TryDo of nil", expect.Err(p.lock.TryDo(w.Context(), nil)), session.ErrInvalid)
	}
	w.wantNodes("bad arguments", 0)
	w.usable(p)
}

// notHeld wants nothing to unlock.
func (p *process) notHeld() {
	p.Helper()
	if p.lock.Unlock != nil {
		p.Want("Unlock", p.lock.Unlock(), zklock.ErrNotHeld)
	}
}

// Unlock gives back a Lock of the same object, and nothing else.
func notHeld(w *world) {
	p := w.process()
	other := w.object(p.m)
	p.notHeld()
	for _, way := range p.ways() {
		h := p.take(way)
		w.Want("Unlock of another object", other.lock.Unlock(), zklock.ErrNotHeld)
		if way.name != "Lock" && way.name != "TryLock" {
			w.Want("Unlock of what "+way.name+" holds", p.lock.Unlock(), zklock.ErrNotHeld)
		}
		w.Want("while it is held", h.err(), nil)
		w.Want("release", h.end(), nil)
		p.notHeld()
	}
	w.gone("in the end", 0)
}

// A lease is released once, also by several goroutines at a time.
func releaseTwice(w *world) {
	p := w.process()
	l, err := p.lock.Acquire(w.Context())
	w.Must(err)
	const all = 8
	results := make(chan error, all)
	for range all {
		go func() { results <- l.Release(w.Context()) }()
	}
	first := 0
	for range all {
		if err := <-results; err == nil {
			first++
		} else {
			w.Want("another Release", err, queue.ErrReleased)
		}
	}
	if first != 1 {
		w.Errorf("%d of %d goroutines released the lease", first, all)
	}
	next := p.take(p.ways()[0])
	w.Want("a second Release", l.Release(w.Context()), queue.ErrReleased)
	w.Want("Err", l.Err(), queue.ErrReleased)
	ctx, cancel := l.Context(w.Context())
	w.Want("a context after the release", context.Cause(ctx), queue.ErrReleased)
	cancel()
	w.Want("the next lease", next.err(), nil)
	w.Want("its Release", next.end(), nil)
	w.gone("in the end", 0)
}
