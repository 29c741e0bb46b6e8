package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/room"
)

// Multi is that of session.Session.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return s.multiOnce(ctx, ops, true)
}

// multiOnce is Multi. If the reply is lost and clarify is false, the caller deletes the nodes that the multi may have left.
func (s *Session) multiOnce(ctx context.Context, ops []any, clarify bool) ([]zk.MultiResponse, error) {
	own, out, err := s.copyOps(ops) // Multi can return before the request is sent
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, opError(multiInfo, err)
	}
	needs := s.roomOf(own)
	b, err := s.room.Book(ctx, nil, needs...)
	if err != nil {
		return nil, opError(multiInfo, err)
	}
	sent := false
	defer func() {
		if !sent { // ctx or the session has ended
			b.Failed()
		}
	}()
	results, err := do(ctx, s, multiInfo, never, func(done func([]zk.MultiResponse, error)) {
		if sent { // the server has refused the last try, which has given its room back
			if b, err = s.room.Book(ctx, nil, needs...); err != nil {
				done(nil, err)
				return
			}
		}
		sent = true
		mine := b
		s.sendMulti(ctx, mine, out, func(results []zk.MultiResponse, err error) {
			if clarify && Uncertain(err) {
				s.clarify(ctx, mine, s.lostOf(own)...)
			}
			done(results, err)
		})
	})
	var refusal *multiRefusal
	if errors.As(err, &refusal) {
		return refusal.results, err
	}
	return results, err
}

// multiInfo describes every multi to hooks.
var multiInfo = hooks.RequestInfo{Op: "multi", Path: "/"}

// sendMulti sends the operations once. b has the room of the nodes that they create, and out is what
// copyOps has returned.
func (s *Session) sendMulti(ctx context.Context, b *room.Booking, out []any, done func([]zk.MultiResponse, error)) {
	b.Sending()
	s.multi(ctx, out)(func(results []zk.MultiResponse, err error) {
		for i := range results {
			if made := results[i].String; made != "" {
				results[i].String = s.inward(made)
			}
		}
		if classify(err) != refused { // a multi that was refused has made no nodes
			err = s.verdict(err)
		}
		settle(b, pathsOf(results), err)
		if err != nil && classify(err) == answered && len(results) > 0 {
			err = &multiRefusal{err, results}
		}
		done(results, err)
	})
}

// pathsOf returns the paths that a multi has made, by operation.
func pathsOf(results []zk.MultiResponse) []string {
	paths := make([]string, len(results))
	for i, r := range results {
		paths[i] = r.String
	}
	return paths
}

// multiRefusal is the server's refusal of a multi, with the results of its operations.
type multiRefusal struct {
	error
	results []zk.MultiResponse
}

func (r *multiRefusal) Unwrap() error { return r.error }

// opOverhead is more than an operation of a multi takes beside its path, data and ACL.
const opOverhead = 64

// sizeOf returns more than an ACL takes in a request.
func sizeOf(acl []zk.ACL) int {
	n := 0
	for _, one := range acl {
		n += len(one.Scheme) + len(one.ID) + 16
	}
	return n
}

// copyOps returns two copies of the operations, as copyOp does. An error says that they cannot be sent.
func (s *Session) copyOps(ops []any) (own, out []any, err error) {
	own, out = make([]any, len(ops)), make([]any, len(ops))
	size := 0
	for i, op := range ops {
		var n int
		if own[i], out[i], n, err = s.copyOp(op); err != nil {
			return nil, nil, fmt.Errorf("multi: operation %d: %w", i, err)
		}
		size += n + opOverhead
	}
	if len(ops) == 0 || size > maxData+misuse.MaxPath { // maxData leaves room for the longest path, and size has the paths
		return nil, nil, misuse.Invalidf("multi of %d operations and %d bytes", len(ops), size)
	}
	return own, out, nil
}

// copyOp returns two copies of an operation, and the size of its data, path and ACL. The path of the
// second copy has the chroot. The copies share nothing with the caller's operation that can
// change.
func (s *Session) copyOp(op any) (own, out any, size int, err error) {
	switch op := op.(type) {
	case *zk.CreateRequest:
		in := *op
		in.Data, in.Acl = bytes.Clone(op.Data), slices.Clone(op.Acl)
		if len(in.Acl) == 0 {
			in.Acl = s.cfg.NodeACL()
		}
		c := in
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Data) + len(c.Path) + sizeOf(c.Acl), errors.Join(misuse.ValidatePath(op.Path), checkMultiFlags(c.Flags))
	case *zk.SetDataRequest:
		in := *op
		in.Data = bytes.Clone(op.Data)
		c := in
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Data) + len(c.Path), misuse.ValidatePath(op.Path)
	case *zk.DeleteRequest:
		in, c := *op, *op
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Path), misuse.ValidatePath(op.Path)
	case *zk.CheckVersionRequest:
		in, c := *op, *op
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Path), misuse.ValidatePath(op.Path)
	}
	return nil, nil, 0, misuse.Invalidf("%T is not an operation of a multi", op)
}

// checkMultiFlags refuses the kinds of node that Multi does not make. Servers have other operations for them,
// which go-zookeeper has no types for.
func checkMultiFlags(flags int32) error {
	switch flags {
	case 0, zk.FlagEphemeral, zk.FlagSequence, zk.FlagEphemeralSequential:
		return nil
	}
	return misuse.Invalidf("flags %d of a create in a multi", flags)
}
