package core

import (
	"context"
	"path"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// Removal is a guaranteed delete in progress.
type Removal struct {
	_ misuse.NoCopy

	done chan struct{}
	err  error
}

// FailedRemoval returns a removal that has failed before anything was sent.
func FailedRemoval(err error) *Removal {
	r := &Removal{done: make(chan struct{}), err: err}
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

// Remove deletes a node for certain. It returns at once and needs no further call: the session retries the
// delete in the background, across reconnects, until the server says that the node is gone, or the session
// ends. If the node is gone already, the removal succeeds.
//
// If the server refuses (zk.ErrNoAuth), the Removal reports that at once, and the session goes on to retry
// the delete slowly: first after about a second, later after at most the session timeout or 30 s. ctx is for
// the hooks of a Trace only. The removal goes on after ctx has ended.
func (s *Session) Remove(ctx context.Context, path string) *Removal {
	return s.RemoveAfter(ctx, path, nil)
}

// RemoveAfter is Remove, except that the delete is sent once after is closed. If after is nil, the delete is
// sent at once.
func (s *Session) RemoveAfter(ctx context.Context, path string, after <-chan struct{}) *Removal {
	p := s.removal(ctx, path)
	if after == nil {
		p.depart()
		s.startRemoval(p)
		return p.Removal
	}
	f := p.f
	p.f = func(ctx context.Context) error {
		select {
		case <-after:
		case <-ctx.Done(): // the session has ended
			return ctx.Err()
		}
		if !p.sent {
			p.depart()
		}
		return f(ctx)
	}
	p.start()
	return p.Removal
}

// removal is the work of a Remove that has not begun. Its first delete may be sent with requests of other
// callers.
func (s *Session) removal(ctx context.Context, path string) *persistence {
	var p *persistence
	p = s.persistence(ctx, "remove "+path, nil, func(ctx context.Context) error {
		among := !p.sent
		p.sent = true
		return ignoreNoNode(s.delete(ctx, path, anyVersion, among))
	})
	p.info = hooks.RequestInfo{Op: "delete", Path: path}
	return p
}

// removalsAtOnce bounds the first deletes of removals that are in flight. Each can have a goroutine, and goes
// on in one if it is lost with its connection.
const removalsAtOnce = 64

// startRemoval sends the first delete of a removal, at once if it can. Otherwise one goroutine sends it in
// its turn, once there is a connection and others have been answered: there may be thousands, for example of
// the places that were kept when the connection broke. Nearly always one delete is enough.
func (s *Session) startRemoval(p *persistence) {
	answered := func() { <-s.removing }
	if s.isReady() {
		select {
		case s.removing <- struct{}{}:
			p.deleteAtOnce(answered)
			return
		default:
		}
	}
	s.removals.Add(func() {
		select {
		case s.removing <- struct{}{}:
		case <-s.life.Done():
		}
		if s.ready(s.life) != nil {
			p.end(s.Err())
			return
		}
		p.deleteAtOnce(answered)
	})
}

// deleteAtOnce sends the first delete. It calls no hook: its caller can hold locks, and the creates that the
// caller sends next come after the delete, with hooks as without them. If there is a hook for requests, it is
// called in another goroutine, just after the delete is sent. answered is called when it is.
func (p *persistence) deleteAtOnce(answered func()) {
	p.sent = true
	batch, settle := new(atomic.Int64), p.settle
	var answer chan error // nil if there is no such hook
	if p.s.cfg.trace.Load().Request != nil {
		answer = make(chan error, 1)
		settle = func(err error) { answer <- err }
		p.info = p.info.WithBatch(batch)
	}
	p.s.sendDelete(p.s.life, p.info.Path, anyVersion, batch, func(_ struct{}, err error) {
		answered()
		settle(p.s.verdict(err))
	})
	if answer == nil {
		return
	}
	if err := p.s.traceLate(p.ctx, p.info, answer, p.settle); err != nil {
		p.end(err)
	}
}

// traceLate calls the hook for a request that was sent before, and waits for its answer, in another goroutine.
func (s *Session) traceLate(ctx context.Context, info hooks.RequestInfo, answer <-chan error, settle func(error)) error {
	return s.begin(func() {
		done := s.traceRequest(s.lifeWith(ctx), info)
		var err error
		select {
		case err = <-answer:
		case <-s.life.Done():
			err = s.Err()
		}
		done(err)
		settle(err)
	})
}

// settle takes the outcome of the first delete. Unless the node is gone, the removal goes on in the
// background.
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
		Removal: &Removal{done: make(chan struct{})},
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
	info    hooks.RequestInfo // of a delete that needs no goroutine
	sent    bool              // a delete was sent
	failed  error             // of that try; nil if it has not failed
	refused bool              // the server has refused; Done is closed
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

// end is called once. err is nil if the server has said that the node is gone, and else the
// session's error.
func (p *persistence) end(err error) {
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
