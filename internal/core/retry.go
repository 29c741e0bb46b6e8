package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// repeat says what do does about a request whose reply was lost, when nobody knows whether the
// server carried the request out.
type repeat int

const (
	always  repeat = iota // repeat it: the request has the same effect twice as once
	never                 // return the error, which matches ErrUncertain
	erasing               // as always, but if ctx or the session ends first, the error matches ErrUncertain
	shared                // as always; other callers may share the request, which traces itself
)

// writes reports whether the request changes something, so that it matters whether it was carried out.
func (r repeat) writes() bool { return r == never || r == erasing }

// do is the only retry loop. It waits for a connection and makes the call. Then it
//
//   - returns the server's answer, be it a result or a refusal,
//   - returns ctx.Err() as soon as ctx ends; if that is before the request has left, it never leaves,
//   - returns the session's error as soon as the session ends,
//   - tries again when the server asks for that, and, unless r is never, when the connection
//     was lost before the reply. WithRetry sets the waits.
//
// An error for a lost connection matches [zk.ErrConnectionClosed]. A request that servers probably refuse
// ([ErrTooLong]) is not tried again.
func do[T any](ctx context.Context, s *Session, info hooks.RequestInfo, r repeat, start starter[T]) (T, error) {
	var none T
	var wait backoff.BackOff
	doubt := false // a try may have been carried out
	failed := func(err error) error {
		if doubt && r.writes() {
			err = uncertain(err)
		}
		return opError(info, err)
	}
	for tries := 1; ; tries++ {
		if err := s.ready(ctx); err != nil {
			return none, failed(err)
		}
		v, effect, err := try(ctx, s, info, r, start)
		doubt = effect == effectUnknown || doubt && effect != effectKnown
		kind := classify(err)
		switch {
		case err == nil:
			return v, nil
		case kind == answered:
			return v, failed(err)
		case s.Err() != nil:
			return none, failed(s.Err())
		case ctx.Err() != nil:
			return none, failed(ctx.Err())
		case kind == replyLost && (r == never || errors.Is(err, ErrTooLong)):
			return none, failed(err)
		}
		if wait == nil {
			wait = s.cfg.Retry()
		}
		d := wait.NextBackOff()
		if d == backoff.Stop {
			return none, failed(err)
		}
		s.traceRetry(ctx, info, tries, err)
		if err := rounds.Until(ctx, s.life.Done(), d); err != nil {
			return none, failed(err)
		}
	}
}

// effect is what a try tells of the effect of a request.
type effect int

const (
	effectKnown   effect = iota // the server has answered
	effectNone                  // this try had none
	effectUnknown               // the server may have carried it out
)

// try makes one call. It returns when the call, ctx or the session has ended. In the latter cases the call
// ends later, and its answer is lost.
func try[T any](ctx context.Context, s *Session, info hooks.RequestInfo, r repeat, start starter[T]) (T, effect, error) {
	traced := endNothing
	if r != shared {
		traced = s.traceRequest(ctx, info)
	}
	type result struct {
		v   T
		err error
	}
	ended := make(chan result, 1)
	start(func(v T, err error) { ended <- result{v, err} })
	var got result
	var err error
	of := effectUnknown
	select {
	case got = <-ended:
		of = effectOf(got.err)
		if err = s.verdict(got.err); errors.Is(err, errNotSent) {
			err = cmp.Or(ctx.Err(), err)
		}
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.life.Done():
		err = s.Err()
	}
	traced(err)
	return got.v, of, err
}

func effectOf(err error) effect {
	switch kind := classify(err); {
	case kind == replyLost:
		return effectUnknown
	case kind == answered && !errors.Is(err, errNotSent):
		return effectKnown
	}
	return effectNone
}

// uncertain is the error of a write of which nobody knows whether it was carried out.
func uncertain(err error) error { return fmt.Errorf("%w: %w", ErrUncertain, err) }

// verdict completes the error of a request. If the session has ended, it returns the cause, even if
// the event that says so has not come yet. It gives every error that is worth another try the same
// sentinel.
func (s *Session) verdict(err error) error {
	switch classify(err) {
	case sessionOver:
		s.lose(lossExpired)
		fallthrough
	case replyLost, refused:
		if cause := s.Err(); cause != nil {
			return cause
		}
		if !errors.Is(err, zk.ErrConnectionClosed) {
			return fmt.Errorf("%w: %w", zk.ErrConnectionClosed, err)
		}
	}
	return err
}

func opError(info hooks.RequestInfo, err error) error {
	return fmt.Errorf("%s %s: %w", info.Op, info.Path, err)
}
