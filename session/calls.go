package session

import (
	"errors"
	"fmt"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// The requests. They go past zk.Conn: see call.go of package wire. All paths have the chroot.

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
			var v T
			err := zk.ErrConnectionClosed // if a hook ends the goroutine
			defer func() { done(v, err) }()
			v, err = call()
		})
		if err != nil {
			var none T
			done(none, err)
		}
	}
}

// call sends a request over the present connection. decode gets the body of the answer.
func call[T any](s *Session, request *wire.Encoder, decode func(*wire.Decoder) (T, error), done func(T, error)) {
	var none T
	w := s.present()
	if w == nil {
		done(none, zk.ErrConnectionClosed)
		return
	}
	w.Call(request.Frame(), func(r wire.Reply) {
		switch {
		case errors.Is(r.Err, wire.ErrTooLong) && errors.Is(r.Err, net.ErrClosed): // the request
			done(none, fmt.Errorf("%w: %w: %w", zk.ErrConnectionClosed, ErrTooLong, r.Err))
		case errors.Is(r.Err, wire.ErrTooLong): // the answer
			done(none, fmt.Errorf("%w: %w", ErrTooLong, r.Err))
		case r.Err != nil:
			done(none, zk.ErrConnectionClosed)
		case r.Code != wire.CodeOK:
			done(none, errorOf(r.Code))
		default:
			done(decoded(&r, decode))
		}
	})
}

// decoded decodes an answer. If several calls share it, only the first decodes it, and all get the same.
func decoded[T any](r *wire.Reply, decode func(*wire.Decoder) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	if r.Shared == nil {
		return decode(&r.Body)
	}
	known, ok := (*r.Shared).(result)
	if !ok {
		known.v, known.err = decode(&r.Body)
		*r.Shared = known
	}
	return known.v, known.err
}

func request(op int32, path string) *wire.Encoder {
	e := wire.NewFrame()
	e.Int32(0) // the number, which Call fills in
	e.Int32(op)
	e.String(path)
	return e
}

// reading is a request that reads, and sets a watch or not.
func reading(op int32, path string, watch bool) *wire.Encoder {
	e := request(op, path)
	e.Bool(watch)
	return e
}

// content is the answer to get.
type content struct {
	data []byte
	stat *zk.Stat
}

func (s *Session) get(path string, watch bool) starter[content] {
	return func(done func(content, error)) {
		call(s, reading(wire.OpGetData, path, watch), func(d *wire.Decoder) (content, error) {
			return content{d.Buffer(), decodeStat(d)}, nil
		}, done)
	}
}

// children is the answer to listing. Thousands of callers may share it, so nobody may change it.
type children struct {
	names []string
	stat  *zk.Stat
}

func (s *Session) listing(path string, watch bool) starter[children] {
	return func(done func(children, error)) {
		call(s, reading(wire.OpGetChildren2, path, watch), func(d *wire.Decoder) (children, error) {
			c := children{d.Strings(), decodeStat(d)}
			return c, s.rejectReply(checkNames(c.names))
		}, done)
	}
}

// exists returns nil if there is no such node.
func (s *Session) exists(path string, watch bool) starter[*zk.Stat] {
	return func(done func(*zk.Stat, error)) {
		call(s, reading(wire.OpExists, path, watch), onlyStat, func(stat *zk.Stat, err error) { done(stat, ignoreNoNode(err)) })
	}
}

func (s *Session) sync(path string) starter[struct{}] {
	return func(done func(struct{}, error)) { call(s, request(wire.OpSync, path), nothing, done) }
}

func (s *Session) set(path string, data []byte, version int32) starter[*zk.Stat] {
	return func(done func(*zk.Stat, error)) {
		e := request(wire.OpSetData, path)
		e.Buffer(data)
		e.Int32(version)
		call(s, e, onlyStat, done)
	}
}

// setWatches sets watches on the data of nodes. The server tells at once which nodes are gone, in the order of the
// paths, and which were changed after the last transaction that this session has seen.
func (s *Session) setWatches(paths []string) starter[struct{}] {
	return func(done func(struct{}, error)) {
		e := wire.NewFrame()
		e.Int32(0) // the number
		e.Int32(wire.OpSetWatches)
		e.Int64(s.seen.Last())
		e.Strings(paths)
		e.Strings(nil) // watches on nodes that do not exist
		e.Strings(nil) // watches on children
		call(s, e, nothing, done)
	}
}

// erase is a delete, and keeps no count.
func (s *Session) erase(path string, version int32) starter[struct{}] {
	return func(done func(struct{}, error)) {
		e := request(wire.OpDelete, path)
		e.Int32(version)
		call(s, e, nothing, done)
	}
}

func nothing(*wire.Decoder) (struct{}, error)    { return struct{}{}, nil }
func onlyStat(d *wire.Decoder) (*zk.Stat, error) { return decodeStat(d), nil }

// create makes a node and returns its path.
func (s *Session) create(path string, data []byte, m CreateMode) starter[string] {
	return func(done func(string, error)) {
		e := request(opOf(m), path)
		encodeNode(e, data, s.cfg.nodeACL(), m.flag)
		if m.hasTTL() {
			e.Int64(m.ttl.Milliseconds())
		}
		call(s, e, func(d *wire.Decoder) (string, error) {
			made := d.String()
			return made, s.rejectReply(checkMade(path, m, made))
		}, done)
	}
}

func opOf(m CreateMode) int32 {
	switch {
	case m.hasTTL():
		return wire.OpCreateTTL
	case m.flag == zk.FlagContainer:
		return wire.OpCreateContainer
	}
	return wire.OpCreate
}

func encodeNode(e *wire.Encoder, data []byte, acl []zk.ACL, flags int32) {
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
func (s *Session) multi(ops []any) starter[[]zk.MultiResponse] {
	return func(done func([]zk.MultiResponse, error)) {
		e := wire.NewFrame()
		e.Int32(0) // the number
		e.Int32(wire.OpMulti)
		for _, op := range ops {
			encodeOp(e, op)
		}
		e.MultiHeader(wire.OpError, true, -1)
		call(s, e, func(d *wire.Decoder) ([]zk.MultiResponse, error) {
			kinds, results, refused := decodeResults(d)
			if wrong := s.rejectReply(checkResults(ops, kinds, results, refused)); wrong != nil {
				return nil, wrong
			}
			return results, refused
		}, done)
	}
}

// kindOf returns the kind of an operation of a multi, and of its result.
func kindOf(op any) int32 {
	switch op.(type) {
	case *zk.CreateRequest:
		return wire.OpCreate
	case *zk.SetDataRequest:
		return wire.OpSetData
	case *zk.DeleteRequest:
		return wire.OpDelete
	}
	return wire.OpCheck
}

// encodeOp appends an operation. copyOp has refused all that it does not know.
func encodeOp(e *wire.Encoder, op any) {
	head := func(op int32, path string) {
		e.MultiHeader(op, false, -1)
		e.String(path)
	}
	switch op := op.(type) {
	case *zk.CreateRequest:
		head(wire.OpCreate, op.Path)
		encodeNode(e, op.Data, op.Acl, op.Flags)
	case *zk.SetDataRequest:
		head(wire.OpSetData, op.Path)
		e.Buffer(op.Data)
		e.Int32(op.Version)
	case *zk.DeleteRequest:
		head(wire.OpDelete, op.Path)
		e.Int32(op.Version)
	case *zk.CheckVersionRequest:
		head(wire.OpCheck, op.Path)
		e.Int32(op.Version)
	}
}

// decodeResults returns the results of a multi, with the kind of each, and the first error of an operation.
func decodeResults(d *wire.Decoder) (kinds []int32, all []zk.MultiResponse, err error) {
	for op, last := d.MultiHeader(); !last && !d.Bad; op, last = d.MultiHeader() {
		var r zk.MultiResponse
		switch op {
		case wire.OpError:
			if code := d.Int32(); code != wire.CodeOK {
				r.Error = errorOf(code)
			}
		case wire.OpCreate:
			r.String = d.String()
		case wire.OpSetData:
			r.Stat = decodeStat(d)
		}
		kinds, all = append(kinds, op), append(all, r)
		if err == nil {
			err = r.Error
		}
	}
	return kinds, all, err
}

func decodeStat(d *wire.Decoder) *zk.Stat {
	return &zk.Stat{
		Czxid: d.Int64(), Mzxid: d.Int64(), Ctime: d.Int64(), Mtime: d.Int64(),
		Version: d.Int32(), Cversion: d.Int32(), Aversion: d.Int32(),
		EphemeralOwner: d.Int64(), DataLength: d.Int32(), NumChildren: d.Int32(), Pzxid: d.Int64(),
	}
}
