package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// The requests, as package wire sends them. All paths have the chroot.

// starter starts a request, or another call without a context, and returns at once. done is called once, when the
// request was answered or its connection was lost. It may be called by the goroutine that reads from
// the connection, so it must not block.
type starter[T any] func(done func(T, error))

// await waits until a call has ended. It is for goroutines that have nothing else to wait for: the end of the
// session ends the call.
func await[T any](start starter[T]) (T, error) {
	type result struct {
		v   T
		err error
	}
	ended := make(chan result, 1)
	start(func(v T, err error) { ended <- result{v, err} })
	r := <-ended
	return r.v, r.err
}

// inGoroutine makes a starter of a call that blocks.
func inGoroutine[T any](s *Session, call func() (T, error)) starter[T] {
	return func(done func(T, error)) {
		err := s.begin(func() {
			v, err := call()
			done(v, err)
		})
		if err != nil {
			var none T
			done(none, err)
		}
	}
}

// sending is how a request is sent.
type sending struct {
	ctx   context.Context // the request does not leave once it has ended
	lasts bool            // one that has not left when its connection ends waits for the next
	batch *atomic.Int64   // if not nil, it may be sent together with others: see wire.Call
}

// call sends a request over the present connection. check, if it is not nil, says what is wrong with an answer that
// cannot be true. take gets the answer. done gets errNotSent if ctx ends before the request has left.
func call[T any](s *Session, how sending, request *codec.Encoder, check func(*codec.Answer) error, take func(*codec.Answer) (T, error),
	done func(T, error),
) {
	var none T
	c := outbox.Call{Frame: request.Frame(), Check: check, GivenUp: how.ctx.Done(), Batch: how.batch}
	c.Done = func(r outbox.Reply) {
		switch {
		case errors.Is(r.Err, outbox.ErrGivenUp) && s.life.Err() != nil:
			done(none, zk.ErrConnectionClosed) // the session has ended: that is no answer
		case errors.Is(r.Err, outbox.ErrGivenUp):
			done(none, errNotSent)
		case errors.Is(r.Err, outbox.ErrTooLong) && errors.Is(r.Err, net.ErrClosed): // the request
			done(none, fmt.Errorf("%w: %w: %w", zk.ErrConnectionClosed, ErrTooLong, r.Err))
		case errors.Is(r.Err, outbox.ErrTooLong): // the answer
			done(none, fmt.Errorf("%w: %w", ErrTooLong, r.Err))
		case r.Err != nil:
			done(none, zk.ErrConnectionClosed)
		case r.Code != codec.CodeOK:
			done(none, errorOf(r.Code))
		default:
			done(take(&r.Answer))
		}
	}
	switch w := s.present(); {
	case w == nil:
		done(none, zk.ErrConnectionClosed)
	case how.lasts:
		s.callLasting(w, c)
	default:
		w.Call(c)
	}
}

func request(op int32, path string) *codec.Encoder {
	e := codec.NewFrame()
	e.Int32(0) // the number, which Call fills in
	e.Int32(op)
	e.String(path)
	return e
}

// reading is a request that reads, and sets a watch or not.
func reading(op int32, path string, watch bool) *codec.Encoder {
	e := request(op, path)
	e.Bool(watch)
	return e
}

// content is the answer to get.
type content struct {
	data []byte
	stat *zk.Stat
}

func (s *Session) get(ctx context.Context, path string, watch bool) starter[content] {
	return func(done func(content, error)) {
		call(s, sending{ctx: ctx}, reading(codec.OpGetData, path, watch), nil, func(a *codec.Answer) (content, error) {
			return content{a.Data, a.Stat}, nil
		}, done)
	}
}

// children is the answer to listing. Thousands of callers may share it, so nobody may change it.
type children struct {
	names []string
	stat  *zk.Stat
}

func (s *Session) listing(ctx context.Context, path string, watch bool) starter[children] {
	return func(done func(children, error)) {
		call(s, sending{ctx: ctx}, reading(codec.OpGetChildren2, path, watch), checkNames, func(a *codec.Answer) (children, error) {
			return children{a.Names, a.Stat}, nil
		}, done)
	}
}

// exists returns nil if there is no such node.
func (s *Session) exists(ctx context.Context, path string, watch bool) starter[*zk.Stat] {
	return func(done func(*zk.Stat, error)) {
		call(s, sending{ctx: ctx}, reading(codec.OpExists, path, watch), nil, onlyStat,
			func(stat *zk.Stat, err error) { done(stat, ignoreNoNode(err)) })
	}
}

func (s *Session) sync(ctx context.Context, path string) starter[struct{}] {
	return func(done func(struct{}, error)) {
		call(s, sending{ctx: ctx}, request(codec.OpSync, path), nil, nothing, done)
	}
}

func (s *Session) set(ctx context.Context, path string, data []byte, version int32) starter[*zk.Stat] {
	return func(done func(*zk.Stat, error)) {
		e := request(codec.OpSetData, path)
		e.Buffer(data)
		e.Int32(version)
		call(s, sending{ctx: ctx, lasts: true}, e, nil, onlyStat, done)
	}
}

// erase is a delete, and keeps no count. batch is that of sending.
func (s *Session) erase(ctx context.Context, path string, version int32, batch *atomic.Int64) starter[struct{}] {
	return func(done func(struct{}, error)) {
		e := request(codec.OpDelete, path)
		e.Int32(version)
		call(s, sending{ctx, true, batch}, e, nil, nothing, done)
	}
}

func nothing(*codec.Answer) (struct{}, error)    { return struct{}{}, nil }
func onlyStat(a *codec.Answer) (*zk.Stat, error) { return a.Stat, nil }

// create makes a node and returns its path. batch is that of sending.
func (s *Session) create(ctx context.Context, path string, data []byte, m CreateMode, batch *atomic.Int64) starter[string] {
	return func(done func(string, error)) {
		e := request(opOf(m), path)
		encodeNode(e, data, s.cfg.NodeACL(), m.flag)
		if m.hasTTL() {
			e.Int64(m.ttl.Milliseconds())
		}
		check := func(a *codec.Answer) error { return checkMade(path, m, a.Path) }
		// The end of the connection can tell whether the servers have containers: see containers.go.
		how := sending{ctx, m.flag != zk.FlagContainer, batch}
		call(s, how, e, check, func(a *codec.Answer) (string, error) { return a.Path, nil }, done)
	}
}

func opOf(m CreateMode) int32 {
	switch {
	case m.hasTTL():
		return codec.OpCreateTTL
	case m.flag == zk.FlagContainer:
		return codec.OpCreateContainer
	}
	return codec.OpCreate
}

func encodeNode(e *codec.Encoder, data []byte, acl []zk.ACL, flags int32) {
	e.Buffer(data)
	e.Int32(int32(len(acl)))
	for _, one := range acl {
		e.Int32(one.Perms)
		e.String(one.Scheme)
		e.String(one.ID)
	}
	e.Int32(flags)
}

// multi carries out all operations or none. If it is refused because of one of them, there are results
// beside the error.
func (s *Session) multi(ctx context.Context, ops []any) starter[[]zk.MultiResponse] {
	return func(done func([]zk.MultiResponse, error)) {
		e := codec.NewFrame()
		e.Int32(0) // the number
		e.Int32(codec.OpMulti)
		for _, op := range ops {
			encodeOp(e, op)
		}
		e.MultiHeader(codec.OpError, true, -1)
		check := func(a *codec.Answer) error { return checkResults(ops, a.Results) }
		call(s, sending{ctx: ctx, lasts: true}, e, check, func(a *codec.Answer) ([]zk.MultiResponse, error) { return responses(a.Results) }, done)
	}
}

// encodeOp appends an operation. copyOp has refused all that it does not know.
func encodeOp(e *codec.Encoder, op any) {
	head := func(op int32, path string) {
		e.MultiHeader(op, false, -1)
		e.String(path)
	}
	switch op := op.(type) {
	case *zk.CreateRequest:
		head(codec.OpCreate, op.Path)
		encodeNode(e, op.Data, op.Acl, op.Flags)
	case *zk.SetDataRequest:
		head(codec.OpSetData, op.Path)
		e.Buffer(op.Data)
		e.Int32(op.Version)
	case *zk.DeleteRequest:
		head(codec.OpDelete, op.Path)
		e.Int32(op.Version)
	case *zk.CheckVersionRequest:
		head(codec.OpCheck, op.Path)
		e.Int32(op.Version)
	}
}

// responses returns the results of a multi, and why it was refused.
func responses(results []codec.Result) (all []zk.MultiResponse, refused error) {
	for _, r := range results {
		one := zk.MultiResponse{String: r.Path, Stat: r.Stat}
		if r.Code != codec.CodeOK {
			one.Error = errorOf(r.Code)
		}
		all = append(all, one)
	}
	if code := codeOfMulti(results); code != codec.CodeOK {
		refused = errorOf(code)
	}
	return all, refused
}
