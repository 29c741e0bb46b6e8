package core

import (
	"cmp"
	"context"
	"errors"
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

// call returns a starter of a request, which goes over the connection that is present then. If it has not left
// when that ends, and lasts is true, it waits for the next connection. take gets the answer. done gets errNotSent
// if ctx ends before the request has left. Once it has ended, the request may be started again.
func call[T any](
	ctx context.Context, s *Session, lasts bool, request outbox.Call, take func(*codec.Answer) (T, error),
) starter[T] {
	return func(done func(T, error)) {
		var none T
		c := request
		c.GivenUp = ctx.Done()
		c.Done = func(r outbox.Reply) {
			switch {
			case errors.Is(r.Err, outbox.ErrGivenUp) && s.life.Err() != nil:
				done(none, zk.ErrConnectionClosed) // the session has ended: that is no answer
			case errors.Is(r.Err, outbox.ErrGivenUp):
				done(none, errNotSent)
			case errors.Is(r.Err, ErrTooLong):
				done(none, r.Err)
			case r.Err != nil:
				done(none, zk.ErrConnectionClosed)
			case r.Code != codec.CodeOK:
				done(none, errorOf(r.Code))
			default:
				done(take(&r.Answer))
			}
		}
		if w := s.present(); lasts { // there is one, since the callers were ready once
			s.callLasting(w, c)
		} else {
			w.Call(c)
		}
	}
}

func request(op int32, path string) *codec.Encoder {
	e := codec.NewFrame()
	e.Int32(0) // the number, which the outbox fills in
	e.Int32(op)
	e.String(path)
	return e
}

// reading is a request that reads, and sets a watch or not. Lists that are alike go together, so all are checked alike.
func reading(op int32, path string, watch bool) outbox.Call {
	e := request(op, path)
	e.Bool(watch)
	one := outbox.Call{Frame: e.Frame()}
	if op == codec.OpGetChildren2 {
		one.Check = checkNames
	}
	return one
}

// content is the answer to get, and to a request that sets a watch.
type content struct {
	data  []byte
	names []string
	stat  *zk.Stat
}

func (s *Session) get(ctx context.Context, path string) starter[content] {
	return call(ctx, s, false, reading(codec.OpGetData, path, false), contentOf)
}

func contentOf(a *codec.Answer) (content, error) { return content{a.Data, a.Names, a.Stat}, nil }

// children is the answer to listing. Thousands of callers may share it, so nobody may change it.
type children struct {
	names []string
	stat  *zk.Stat
}

func (s *Session) listing(ctx context.Context, path string, watch bool) starter[children] {
	take := func(a *codec.Answer) (children, error) { return children{a.Names, a.Stat}, nil }
	return call(ctx, s, false, reading(codec.OpGetChildren2, path, watch), take)
}

// exists returns nil if there is no such node.
func (s *Session) exists(ctx context.Context, path string) starter[*zk.Stat] {
	look := call(ctx, s, false, reading(codec.OpExists, path, false), onlyStat)
	return func(done func(*zk.Stat, error)) {
		look(func(stat *zk.Stat, err error) { done(stat, ignoreNoNode(err)) })
	}
}

func (s *Session) sync(ctx context.Context, path string) starter[struct{}] {
	return call(ctx, s, false, outbox.Call{Frame: request(codec.OpSync, path).Frame()}, nothing)
}

func (s *Session) set(ctx context.Context, path string, data []byte, version int32) starter[*zk.Stat] {
	return call(ctx, s, true, setting(path, data, version), onlyStat)
}

func setting(path string, data []byte, version int32) outbox.Call {
	e := request(codec.OpSetData, path)
	e.Buffer(data)
	e.Int32(version)
	return outbox.Call{Frame: e.Frame()}
}

// erase is a delete, and keeps no count. batch is that of outbox.Call.
func (s *Session) erase(ctx context.Context, path string, version int32, batch *atomic.Int64) starter[struct{}] {
	one := versioned(codec.OpDelete, path, version)
	one.Batch = batch
	return call(ctx, s, true, one, nothing)
}

// versioned is a delete or a check of a node of a version.
func versioned(op int32, path string, version int32) outbox.Call {
	e := request(op, path)
	e.Int32(version)
	return outbox.Call{Frame: e.Frame()}
}

func nothing(*codec.Answer) (struct{}, error)    { return struct{}{}, nil }
func onlyStat(a *codec.Answer) (*zk.Stat, error) { return a.Stat, nil }

// create makes a node and returns its path. batch is that of outbox.Call.
func (s *Session) create(ctx context.Context, path string, data []byte, m CreateMode, batch *atomic.Int64) starter[string] {
	one := making(path, data, s.cfg.NodeACL(), m)
	one.Batch = batch
	lasts := m.flag != zk.FlagContainer // the end of the connection tells something: see containers.go
	return call(ctx, s, lasts, one, func(a *codec.Answer) (string, error) { return a.Path, nil })
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

// making is a create.
func making(path string, data []byte, acl []zk.ACL, m CreateMode) outbox.Call {
	e := request(opOf(m), path)
	e.Buffer(data)
	e.Int32(int32(len(acl)))
	for _, one := range acl {
		e.Int32(one.Perms)
		e.String(one.Scheme)
		e.String(one.ID)
	}
	e.Int32(m.flag)
	if m.hasTTL() {
		e.Int64(m.ttl.Milliseconds())
	}
	return outbox.Call{Frame: e.Frame(), Check: func(a *codec.Answer) error { return checkMade(path, m, a.Path) }}
}

// responses returns the results of a multi, and why it was refused: the first error of an operation.
func responses(results []codec.Result) (all []zk.MultiResponse, refused error) {
	for _, r := range results {
		one := zk.MultiResponse{String: r.Path, Stat: r.Stat}
		if r.Code != codec.CodeOK {
			one.Error = errorOf(r.Code)
			refused = cmp.Or(refused, one.Error)
		}
		all = append(all, one)
	}
	return all, refused
}
