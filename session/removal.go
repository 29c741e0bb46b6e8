package session

import (
	"context"
	"errors"
	"path"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// removal is a guaranteed delete in progress. It implements plumbing.Removal.
type removal struct {
	done chan struct{}
	err  error
}

func (r *removal) Done() <-chan struct{} { return r.done }
func (r *removal) Err() error            { return r.err }

// remove is plumbing.Session.RemoveAfter.
func (s *Session) remove(ctx context.Context, path string, after <-chan struct{}) *removal {
	var p *persistence
	p = s.persistence(ctx, "remove "+path, nil, func(ctx context.Context) error {
		if after != nil {
			select {
			case <-after:
			case <-ctx.Done(): // the session has ended
				return ctx.Err()
			}
			if !p.sent {
				p.leave(s.room.noted(path), nil)
			}
		}
		among := !p.sent
		p.sent = true
		return ignoreNoNode(s.delete(ctx, path, anyVersion, among))
	})
	p.info = RequestInfo{Op: "delete", Path: path}
	if after != nil {
		p.start()
		return p.removal
	}
	p.leave(s.room.noted(path), nil)
	s.startRemoval(p)
	return p.removal
}

// removalsAtOnce bounds the first deletes of removals that are in flight. Each can have a goroutine, and goes on in one
// if it is lost with its connection.
const removalsAtOnce = 64

// startRemoval sends the first delete of a removal, at once if it can. Otherwise one goroutine sends it in its turn, once
// there is a connection and others have been answered: there may be thousands, for example of the places that were kept
// when the connection broke. Nearly always one delete is enough.
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
	s.removals.add(func() {
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

// deleteAtOnce sends the first delete. It calls no hook: its caller can hold locks, and the creates that the caller
// sends next come after the delete, with hooks as without them. If there is a hook for requests, it is called in
// another goroutine, just after the delete is sent. answered is called when it is.
func (p *persistence) deleteAtOnce(answered func()) {
	p.sent = true
	if p.s.cfg.trace.load().Request == nil {
		p.s.sendDelete(p.s.life, p.info.Path, anyVersion, new(atomic.Int64), func(_ struct{}, err error) {
			answered()
			p.settle(p.s.verdict(err))
		})
		return
	}
	answer := make(chan error, 1)
	p.info.batch = new(atomic.Int64)
	p.s.sendDelete(p.s.life, p.info.Path, anyVersion, p.info.batch, func(_ struct{}, err error) {
		answered()
		answer <- p.s.verdict(err)
	})
	outcome := func() error {
		select {
		case err := <-answer:
			return err
		case <-p.s.life.Done():
			return p.s.Err()
		}
	}
	err := p.s.begin(func() {
		done := p.s.traceRequest(p.s.lifeWith(p.ctx), p.info)
		err := outcome()
		done(err)
		p.settle(err)
	})
	if err != nil {
		p.end(err)
	}
}

// settle takes the outcome of the first delete. Unless the node is gone, the removal goes on in the background.
func (p *persistence) settle(err error) {
	if ignoreNoNode(err) == nil {
		p.end(nil)
		return
	}
	p.failed = opError(p.info, err)
	p.start()
}

// sweep is plumbing.Session.Sweep.
func (s *Session) sweep(ctx context.Context, dir string, match func(name string) bool, lost plumbing.Creation) *removal {
	p := s.persistence(ctx, "sweep "+dir, func() { resolveGone(lost) }, func(ctx context.Context) error {
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
	p.leave(nil, lost)
	p.start()
	return p.removal
}

// resolveGone takes note that a create whose reply was lost has made no node, or one that is gone. lost may be nil.
func resolveGone(lost plumbing.Creation) {
	if lost != nil {
		lost.Resolve("")
	}
}

// leave takes note that the work deletes a node of ours, or what a create has made whose reply was lost. Either may be
// nil. The room is on its way until the server refuses.
func (p *persistence) leave(st *share, lost plumbing.Creation) {
	p.s.room.depart(st)
	if lost != nil {
		lost.Leave()
	}
	p.stay = func() {
		p.s.room.stay(st)
		if lost != nil {
			lost.(interface{ stay() }).stay()
		}
	}
}

// persistence returns the work that repeats f in the background, once it has started, until f succeeds or the session
// ends. It goes on after ctx has ended, and after a WithRetry that says stop. If the server refuses, the removal is done,
// and f is repeated slowly from then on, because the permission may come back. then, if not nil, is called once f has
// succeeded or the session has ended, and not before.
func (s *Session) persistence(ctx context.Context, what string, then func(), f func(context.Context) error) *persistence {
	return &persistence{
		removal: &removal{done: make(chan struct{})},
		s:       s, ctx: ctx, what: what, then: then, f: f,
	}
}

// persistence is the work behind a removal. One goroutine at a time runs it.
type persistence struct {
	*removal
	s       *Session
	ctx     context.Context
	what    string
	then    func()
	stay    func() // called when the server refuses; may be nil
	f       func(context.Context) error
	info    RequestInfo // of a delete that needs no goroutine
	sent    bool        // a delete was sent
	failed  error       // of that try; nil if it has not failed
	refused bool        // the server has refused; Done is closed
}

func (p *persistence) start() {
	if err := p.s.begin(p.run); err != nil {
		p.end(err)
	}
}

func (p *persistence) run() {
	wait := p.s.cfg.retry()
	var slow backoff.BackOff
	life := p.s.lifeWith(p.ctx)
	for {
		err := p.failed
		if p.failed = nil; err == nil {
			err = p.f(life)
		} else if classify(err) != answered && p.s.Err() == nil {
			p.s.traceRetry(life, p.info, 1, err)
		}
		next := wait
		switch {
		case err == nil, p.s.Err() != nil:
			if err != nil {
				err = p.s.Err()
			}
			p.end(err)
			return
		case classify(err) == answered:
			p.refuse(err)
			if slow == nil {
				slow = slowRetry(p.s.Timeout())
			}
			next = slow
		}
		if pause(p.s.life, untiring(next)) != nil {
			p.end(p.s.Err())
			return
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
	p.s.cfg.log.Error("zookeeper refuses to remove a node; the removal is tried again slowly",
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
		p.s.cfg.log.Info("zookeeper has removed a node that it had refused to remove", "what", p.what)
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

func ignoreNoNode(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
