// Package grpc takes a lock around the calls of a gRPC server.
//
// An interceptor carries a loss well: the context of the handler ends, and the call fails with the code Aborted, even if the
// handler has returned a response, since another server can have been at work beside it. Whether the handler has done its
// work is not known then. A handler that looks at no context goes on after the loss. Either claims what it writes to with
// the token of the lock (queue.LeaseFrom of its context, and package fence).
package grpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Unary runs the handler of each call under the lock of a key, across all servers. key returns false for calls that need no
// lock. The deadline of the call bounds the wait and the work. wait, which may be nil, bounds the wait alone (queue.WithMaxWait):
// the call fails with the code Unavailable then, and nothing was done.
func Unary(locks *zklock.Keyed, key func(method string, req any) (string, bool), wait func(context.Context) context.Context) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		k, ok := key(info.FullMethod, req)
		if !ok {
			return handler(ctx, req)
		}
		if wait != nil {
			ctx = wait(ctx)
		}
		err = locks.Do(ctx, k, func(ctx context.Context) (err error) {
			resp, err = handler(ctx, req)
			return err
		})
		if err != nil {
			return nil, status.Error(code(err), err.Error())
		}
		return resp, nil
	}
}

// code returns the code for an error of the lock or of the handler.
func code(err error) codes.Code {
	switch {
	case errors.Is(err, session.ErrLost), errors.Is(err, queue.ErrRevoked): // before the handler's, a consequence
		return codes.Aborted
	case errors.Is(err, queue.ErrMaxWait), errors.Is(err, session.ErrClosed):
		return codes.Unavailable
	case errors.Is(err, session.ErrTooManyNodes):
		return codes.ResourceExhausted
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Code()
	}
	return status.Code(err) // the handler's, or Unknown
}
