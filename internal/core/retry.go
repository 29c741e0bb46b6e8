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
	always repeat = iota // repeat it: the request has the same effect twice as once
	never                // return the error
	shared               // as always; other callers may share the request, which traces itself
)

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
	for tries := 1; ; tries++ {
		if err := s.ready(ctx); err != nil {
			return none, opError(info, err)
		}
		v, err := try(ctx, s, info, r, start)
		kind := classify(err)
		switch {
		case err == nil:
			return v, nil
		case kind == answered:
			return v, opError(info, err)
		case s.Err() != nil:
			return none, opError(info, s.Err())
		case ctx.Err() != nil:
			return none, opError(info, ctx.Err())
		case kind == replyLost && (r == never || errors.Is(err, ErrTooLong)):
			return none, opError(info, err)
		}
		if wait == nil {
			wait = s.cfg.Retry()
		}
		d := wait.NextBackOff()
		if d == backoff.Stop {
			return none, opError(info, err)
		}
		s.traceRetry(ctx, info, tries, err)
		if err := rounds.Until(ctx, s.life.Done(), d); err != nil {
			return none, opError(info, err)
		}
	}
}

// try makes one call. It returns when the call, ctx or the session has ended. In the latter cases the call
// ends later, and its answer is lost.
func try[T any](ctx context.Context, s *Session, info hooks.RequestInfo, r repeat, start starter[T]) (T, error) {
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
	select {
	case got = <-ended:
		if err = s.verdict(got.err); errors.Is(err, errNotSent) {
			err = cmp.Or(ctx.Err(), err)
		}
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.life.Done():
		err = s.Err()
	}
	traced(err)
	return got.v, err
}

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
