package core

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/room"
)

// Multi is that of session.Session.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	o, err := s.operations(ops)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, opError(multiInfo, err)
	}
	b, err := s.room.Book(ctx, nil, o.room...)
	if err != nil {
		return nil, opError(multiInfo, err)
	}
	sent := false
	defer func() {
		if !sent { // ctx or the session has ended
			b.Failed()
		}
	}()
	return do(ctx, s, multiInfo, never, func(done func([]zk.MultiResponse, error)) {
		if sent { // the server has refused the last try, which has given its room back
			if b, err = s.room.Book(ctx, nil, o.room...); err != nil {
				done(nil, err)
				return
			}
		}
		sent = true
		mine := b
		s.sendMulti(ctx, mine, o, func(results []zk.MultiResponse, err error) {
			if Uncertain(err) {
				s.clarify(ctx, mine, o.creates...)
			}
			done(results, err)
		})
	})
}

// multiInfo describes every multi to hooks.
var multiInfo = hooks.RequestInfo{Op: "multi", Path: "/"}

// sendMulti sends the operations once. b has the room of the nodes that they create. If they are refused because of
// one of them, there are results beside the error.
func (s *Session) sendMulti(ctx context.Context, b *room.Booking, o *operations, done func([]zk.MultiResponse, error)) {
	b.Sending()
	take := func(a *codec.Answer) ([]zk.MultiResponse, error) { return responses(a.Results) }
	call(ctx, s, true, o.request, take)(func(results []zk.MultiResponse, err error) {
		for i := range results {
			if made := results[i].String; made != "" {
				results[i].String = s.inward(made)
			}
		}
		if classify(err) != refused { // a multi that was refused has made no nodes
			err = s.verdict(err)
		}
		settle(b, pathsOf(results), err)
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

// operations are those of a multi. They share nothing with the caller's that can change, because Multi can return
// before the request is sent.
type operations struct {
	request outbox.Call // for all of them
	room    []room.Op   // what each does to the account
	creates []*search   // the search for the node of each; nil for all but creates of ephemeral nodes
}

// operations returns the operations of a multi. An error says that they cannot be sent.
func (s *Session) operations(ops []any) (*operations, error) {
	o := &operations{room: make([]room.Op, len(ops)), creates: make([]*search, len(ops))}
	parts := make([]outbox.Call, len(ops))
	for i, op := range ops {
		if err := s.operation(op, &parts[i], &o.room[i], &o.creates[i]); err != nil {
			return nil, fmt.Errorf("multi: operation %d: %w", i, err)
		}
	}
	o.request = outbox.Multi(parts)
	if n := len(o.request.Frame); len(ops) == 0 || n > maxData+misuse.MaxPath { // maxData leaves room for a path
		return nil, misuse.Invalidf("multi of %d operations and %d bytes", len(ops), n)
	}
	return o, nil
}

// operation sets what operations has of one.
func (s *Session) operation(op any, part *outbox.Call, size *room.Op, create **search) error {
	switch op := op.(type) {
	case *zk.CreateRequest:
		acl, mode := op.Acl, CreateMode{flag: op.Flags}
		if len(acl) == 0 {
			acl = s.cfg.NodeACL()
		}
		*part = making(s.outward(op.Path), op.Data, acl, mode)
		if mode.ephemeral() {
			size.Creates = s.sizeOf(op.Path, mode.sequential())
			*create = &search{s: s, path: op.Path, data: bytes.Clone(op.Data), mode: mode}
		}
		return errors.Join(misuse.ValidatePath(op.Path), checkMultiFlags(op.Flags))
	case *zk.SetDataRequest:
		*part = setting(s.outward(op.Path), op.Data, op.Version)
		return misuse.ValidatePath(op.Path)
	case *zk.DeleteRequest:
		*part, size.Deletes = versioned(codec.OpDelete, s.outward(op.Path), op.Version), op.Path
		return misuse.ValidatePath(op.Path)
	case *zk.CheckVersionRequest:
		*part = versioned(codec.OpCheck, s.outward(op.Path), op.Version)
		return misuse.ValidatePath(op.Path)
	}
	return misuse.Invalidf("%T is not an operation of a multi", op)
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
