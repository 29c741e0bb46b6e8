package core

import (
	"context"
	"path"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Removal is a guaranteed delete in progress.
type Removal struct {
	_ misuse.NoCopy

	done chan struct{}
	err  error
	cut  <-chan struct{}
}

// FailedRemoval returns a removal that has failed before anything was sent.
func FailedRemoval(err error) *Removal {
	r := &Removal{done: make(chan struct{}), err: err, cut: closedNow}
	close(r.done)
	return r
}

// Made returns r. It panics if r is nil or a zero value.
func (r *Removal) Made() *Removal {
	if r == nil || r.done == nil {
		panic("session: Removal not made by Session.Remove")
	}
	return r
}

// Done returns a channel that is closed when the server has said that the node is gone, when the server has
// refused for the first time, or when the session has ended, which removes the node. After a refusal the
// session goes on trying, more slowly.
func (r *Removal) Done() <-chan struct{} { return r.done }

// Err returns nil if the server has said that the node is gone. Otherwise it returns the session's error or
// the server's refusal. Call it once Done is closed.
func (r *Removal) Err() error { return r.err }

// Cut returns a channel that is closed when the connection ends that was present when the removal began. It is closed
// already if there was none. Then the delete is sent on the next connection, before the requests of others.
func (r *Removal) Cut() <-chan struct{} { return r.cut }

// Remove deletes a node for certain. It returns at once and needs no further call: the session retries the
// delete in the background, across reconnects, until the server says that the node is gone, or the session
// ends. If the node is gone already, the removal succeeds. On a new connection, deletes that are still to be confirmed
// are sent before the requests of others.
//
// If the server refuses (zk.ErrNoAuth), the Removal reports that at once, and the session goes on to retry
// the delete slowly: first after about a second, later after at most the session timeout or 30 s. ctx is for
// the hooks of a Trace only. The removal goes on after ctx has ended.
func (s *Session) Remove(ctx context.Context, path string) *Removal {
	p := s.removal(ctx, path)
	p.depart()
	p.send()
	return p.Removal
}

// RemoveAfter is Remove, except that the delete is sent once after is closed.
func (s *Session) RemoveAfter(ctx context.Context, path string, after <-chan struct{}) *Removal {
	p := s.removal(ctx, path)
	err := s.begin(func() {
		select {
		case <-after:
			p.depart()
			p.send()
		case <-s.life.Done():
			p.end(s.Err())
		}
	})
	if err != nil {
		p.end(err)
	}
	return p.Removal
}

// Removing is that of session.Session.
func (s *Session) Removing(path string) bool { return s.underway.at(path) != nil }

// removal is the work of a Remove that has not begun.
func (s *Session) removal(ctx context.Context, path string) *persistence {
	var p *persistence
	p = s.persistence(ctx, "remove "+path, func() { s.underway.end(path, p.Removal) }, func(ctx context.Context) error {
		return ignoreNoNode(s.delete(ctx, path, anyVersion, false))
	})
	p.info = hooks.RequestInfo{Op: "delete", Path: path}
	s.underway.add(path, p.Removal)
	return p
}

// send sends the delete of a removal, or has the next connection send it. It needs no goroutine, unless there are
// hooks: when a connection breaks, the places of thousands of locks can be given up at once.
func (p *persistence) send() {
	s := p.s
	s.mu.Lock()
	err, open := s.err, s.link.open
	if err == nil && !open {
		s.owed = append(s.owed, p)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		p.end(err)
	case open:
		p.deleteAtOnce()
	}
}

// deleteAtOnce sends the delete. It calls no hook: its caller can hold locks, and the creates that the
// caller sends next come after the delete, with hooks as without them. If there are hooks for requests, they are
// called in another goroutine, just after the delete is sent. A delete whose connection ends before the answer is sent
// again by the next connection, unless f has to look first.
func (p *persistence) deleteAtOnce() {
	batch := new(atomic.Int64)
	if p.tries++; p.tries > 1 {
		batch = nil // the node may be gone, for which a transaction would be refused
	}
	answer := p.traced(batch)
	p.s.sendDelete(p.s.life, p.info.Path, anyVersion, batch, func(_ struct{}, err error) {
		// A server that says ConnectionLoss is still there, and the retries of such an answer have pauses.
		lost := err == zk.ErrConnectionClosed //nolint:errorlint // see above
		err = p.s.verdict(err)
		lost = lost && p.s.Err() == nil && !p.looks
		switch {
		case answer != nil:
			answer <- tryEnd{err, lost}
		case !lost:
			p.settle(err)
		}
		if lost {
			p.send()
		}
	})
}

// tryEnd is how a try of a removal has ended. lost says that it will be repeated on another connection.
type tryEnd struct {
	err  error
	lost bool
}

// traced has the hooks called for a try. It returns where they get the outcome, or nil if there are no hooks: then
// nobody but the caller settles the outcome.
func (p *persistence) traced(batch *atomic.Int64) chan<- tryEnd {
	if t := p.s.cfg.trace.Load(); t.Request == nil && t.Retry == nil {
		return nil
	}
	info, try := p.info, p.tries
	if batch != nil {
		info = info.WithBatch(batch)
	}
	before, told := p.told, make(chan struct{})
	p.told = told
	answer := make(chan tryEnd, 1)
	err := p.s.begin(func() {
		defer close(told)
		if before != nil {
			<-before
		}
		ctx := p.s.lifeWith(p.ctx)
		got := p.s.traceAnswer(ctx, info, answer)
		if !got.lost {
			p.settle(got.err)
			return
		}
		p.s.traceRetry(ctx, info, try, got.err)
	})
	if err != nil {
		p.end(err)
	}
	return answer
}

// traceAnswer calls the hook for a request that was sent before, and waits for its outcome.
func (s *Session) traceAnswer(ctx context.Context, info hooks.RequestInfo, answer <-chan tryEnd) (got tryEnd) {
	done := s.traceRequest(ctx, info)
	select {
	case got = <-answer:
	case <-s.life.Done():
		got.err = s.Err()
	}
	done(got.err)
	return got
}

// settle takes the outcome of a delete that the connection has not cut short. Unless the node is gone, the removal goes
// on in the background.
func (p *persistence) settle(err error) {
	if ignoreNoNode(err) == nil {
		p.end(nil)
		return
	}
	p.failed = opError(p.info, err)
	p.start()
}

// Sweep deletes, as Remove does, the children of dir whose names match. It finds the node of a create whose
// reply was lost. It syncs first, so that it sees every node that was created before the call. lost is that
// create, whose room is free when the sweep has succeeded, or nil.
func (s *Session) Sweep(ctx context.Context, dir string, match func(name string) bool, lost *Creation) *Removal {
	p := s.persistence(ctx, "sweep "+dir, nil, func(ctx context.Context) error {
		if err := s.newSync(ctx, dir); err != nil {
			return err
		}
		names, _, err := s.Children(ctx, dir)
		if err != nil {
			return ignoreNoNode(err)
		}
		for _, name := range names {
			if !match(name) {
				continue
			}
			if err := ignoreNoNode(s.delete(ctx, path.Join(dir, name), anyVersion, false)); err != nil {
				return err
			}
		}
		return nil
	})
	if lost != nil {
		lost.Leave()
		p.then, p.stay = func() { lost.Resolve("") }, lost.stay
	}
	p.start()
	return p.Removal
}

// depart takes note that the work deletes a node of ours, whose room is on its way until the server refuses.
func (p *persistence) depart() {
	node := p.s.room.At(p.info.Path)
	p.s.room.Depart(node)
	p.stay = func() { p.s.room.Stay(node) }
}

// persistence returns the work that repeats f in the background, once it has started, until f succeeds or the
// session ends. It goes on after ctx has ended, and after a WithRetry that says stop. If the server refuses,
// the removal is done, and f is repeated slowly from then on. then, if not nil, is called once f has succeeded
// or the session has ended, and not before.
func (s *Session) persistence(ctx context.Context, what string, then func(), f func(context.Context) error) *persistence {
	return &persistence{
		Removal: &Removal{done: make(chan struct{}), cut: s.cut()},
		s:       s, ctx: ctx, what: what, then: then, f: f,
	}
}

// persistence is the work behind a removal. One goroutine at a time runs it.
type persistence struct {
	*Removal
	s       *Session
	ctx     context.Context
	what    string
	then    func()
	stay    func() // called when the server refuses; may be nil
	f       func(context.Context) error
	failed  error // of the latest try; nil if it has not failed
	refused bool  // the server has refused; Done is closed
	over    atomic.Bool

	// Of a removal.
	info  hooks.RequestInfo
	looks bool            // f is to repeat the delete, since it looks first whose node is there
	tries int             // how many deletes were sent
	told  <-chan struct{} // closed when the hooks know of the latest; nil if there are no hooks
}

func (p *persistence) start() {
	if err := p.s.begin(p.run); err != nil {
		p.end(err)
	}
}

func (p *persistence) run() {
	life := p.s.lifeWith(p.ctx)
	p.end(p.s.untilDone(func() error {
		err := p.failed
		if p.failed = nil; err == nil {
			return p.f(life)
		}
		if classify(err) != answered && p.s.Err() == nil {
			p.s.traceRetry(life, p.info, 1, err)
		}
		return err
	}, p.refuse))
}

// untilDone calls f until it succeeds, or the session ends: then it returns the cause. If the server refuses, it calls
// refused, and f more slowly from then on, because the permission may come back.
func (s *Session) untilDone(f func() error, refused func(error)) error {
	wait := s.cfg.Retry()
	var slow backoff.BackOff
	for {
		err := f()
		if err == nil {
			return nil
		}
		next := wait
		if s.Err() == nil && classify(err) == answered {
			refused(err)
			if slow == nil {
				slow = slowRetry(s.Timeout())
			}
			next = slow
		}
		if s.Err() != nil || rounds.Pause(s.life, rounds.Untiring(next)) != nil {
			return s.Err()
		}
	}
}

// refuse reports the first refusal by the server.
func (p *persistence) refuse(err error) {
	if p.refused {
		return
	}
	p.refused, p.err = true, err
	if p.stay != nil {
		p.stay()
	}
	close(p.done)
	p.s.cfg.Log.Error("zookeeper refuses to remove a node; the removal is tried again slowly",
		"what", p.what, "err", err)
}

// end ends the work, once. err is nil if the server has said that the node is gone, and else the
// session's error.
func (p *persistence) end(err error) {
	if p.over.Swap(true) {
		return // the end of the session and the lost answer are noticed at the same time
	}
	if p.then != nil {
		p.then()
	}
	switch {
	case !p.refused:
		p.err = err
		close(p.done)
	case err == nil:
		p.s.cfg.Log.Info("zookeeper has removed a node that it had refused to remove", "what", p.what)
	}
}

// Waits between the tries of a removal that the server has refused.
const (
	slowFirst = time.Second
	slowMax   = 30 * time.Second
)

// slowRetry returns waits that grow from about a second to the session timeout, but at most 30 s,
// with jitter.
func slowRetry(timeout time.Duration) backoff.BackOff {
	const jitter = 0.2
	most := min(slowMax, timeout)
	return &backoff.ExponentialBackOff{
		InitialInterval:     min(slowFirst, time.Duration(float64(most)/(1+jitter))),
		MaxInterval:         time.Duration(float64(most) / (1 + jitter)),
		Multiplier:          2,
		RandomizationFactor: jitter,
	}
}
