package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// repeat is the only retry loop. It waits for a connection and tries once over it. A try returns a result, whether the
// servers may have carried it out, or may yet, and an error. Then repeat
//
//   - returns the server's answer, be it a result or a refusal,
//   - returns ctx.Err() as soon as ctx ends; if that is before the request has left, it never leaves,
//   - returns the session's error as soon as the session ends,
//   - tries again when the request was not sent or the server asks for that, and, if it has the same effect twice as once,
//     when the connection was lost before the reply. WithBackoff sets the waits.
//
// The error of a request that is not repeated matches ErrUncertain if the servers may have carried it out.
func repeat[T any](ctx context.Context, s *Session, op, path string, again bool, try func(*link) (T, bool, error)) (T, error) {
	var none T
	for tries, waits := 1, s.cfg.waits; ; tries++ {
		l, err := s.ready(ctx)
		if err != nil {
			return none, opError(op, path, err)
		}
		r, doubt, err := try(l)
		what := outcomeOf(err)
		switch {
		case err == nil:
			return r, nil
		case doubt && !again:
			return r, opError(op, path, fmt.Errorf("%w: %w", ErrUncertain, err))
		case what == answered, errors.Is(err, ErrTooLong):
			return r, opError(op, path, err)
		case errors.Is(err, errNotSent):
			select {
			case <-l.cut:
				continue // ready waits for the next connection
			default: // a watch was shared with a call whose connection had ended; this one stands
			}
		}
		s.traceRetry(ctx, op, tries, err)
		if err := rounds.Until(ctx, s.life.Done(), waits.Next()); err != nil {
			return none, opError(op, path, err)
		}
	}
}

// flight is what leaves together, in this order.
type flight []leg

// leg is one request of a flight.
type leg struct {
	op, path string                    // for hooks and errors; the path has no chroot
	frame    []byte                    // with the chroot
	check    func(*codec.Answer) error // see wire.Call; may be nil
	first    bool                      // see wire.Call
	shared   **Watch                   // if it is not nil, the request sets the shared watch on the data of path, or takes the one that is there
	ended    func(wire.Reply)          // called with the end, in the order of the stream; must not block; may be nil
}

// request sends one request until there is an answer, or once if again is false.
func (s *Session) request(ctx context.Context, again bool, one leg) (wire.Reply, error) {
	return repeat(ctx, s, one.op, one.path, again, func(l *link) (wire.Reply, bool, error) {
		return s.try(ctx, l, flight{one})
	})
}

// try sends a flight once. All of it must succeed on the same connection. try returns the reply to the last, when the flight,
// ctx or the session has ended, and the first error. doubt says that the servers may have carried the last out, or may yet.
func (s *Session) try(ctx context.Context, l *link, f flight) (r wire.Reply, doubt bool, err error) {
	replies, doubt, err := s.tryAll(ctx, l, f)
	return replies[len(f)-1], doubt, err
}

// tryAll is try with all replies, as far as they have come. A shared watch has no reply: the caller looks at the watch.
func (s *Session) tryAll(ctx context.Context, l *link, f flight) (replies []wire.Reply, doubt bool, err error) {
	type end struct {
		i int
		wire.Reply
	}
	replies = make([]wire.Reply, len(f))
	ends := make([]func(error), len(f))
	calls := make([]*wire.Call, 0, len(f))
	byLeg := make([]*wire.Call, len(f))
	ended := make(chan end, len(f))
	due := 0
	for i, one := range f {
		if one.shared != nil {
			w, call := s.prepareWatch(ctx, onData, one.path)
			if *one.shared = w; call != nil {
				calls = append(calls, call)
			}
			continue
		}
		due++
		ends[i] = s.traceRequest(ctx, one.op, one.path)
		byLeg[i] = &wire.Call{Frame: one.frame, Check: one.check, First: one.first, Done: func(r wire.Reply) {
			if one.ended != nil {
				one.ended(r)
			}
			ended <- end{i, r}
		}}
		calls = append(calls, byLeg[i])
	}
	l.conn.Start(calls...)
	for ; due > 0; due-- {
		select {
		case e := <-ended:
			replies[e.i] = e.Reply
			one := s.verdict(e.Reply)
			err = cmp.Or(err, one)
			if e.i == len(f)-1 {
				doubt = outcomeOf(one) == inDoubt || e.Err != nil && !errors.Is(e.Err, wire.ErrNotSent)
			}
			ends[e.i](cmp.Or(one, firstError(e.Results)))
			ends[e.i] = nil
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.life.Done():
			err = s.Err()
		}
		for i, one := range f { // what has not left never leaves; others may wait for a shared watch
			if ends[i] == nil {
				continue
			}
			ends[i](err)
			back := l.conn.Withdraw(byLeg[i])
			if back && one.ended != nil {
				one.ended(wire.Reply{Err: wire.ErrNotSent})
			}
			doubt = !back
		}
		return replies, doubt, err
	}
	return replies, doubt, err
}

// firstError returns the first error of the operations of a multi, or nil.
func firstError(results []codec.Result) error {
	for _, r := range results {
		if r.Code != codec.CodeOK {
			return errorOf(r.Code)
		}
	}
	return nil
}

// verdict returns the error of a reply. If the session has ended, that is the cause, even if the event that says so has
// not come yet.
func (s *Session) verdict(r wire.Reply) error {
	var err error
	switch {
	case errors.Is(r.Err, ErrTooLong):
		return r.Err
	case errors.Is(r.Err, wire.ErrNotSent):
		err = errNotSent
	case errors.Is(r.Err, wire.ErrLongest):
		err = fmt.Errorf("%w: %w", zk.ErrConnectionClosed, r.Err)
	case r.Err != nil:
		err = zk.ErrConnectionClosed
	case r.Code != codec.CodeOK:
		err = errorOf(r.Code)
	default:
		return nil
	}
	what := outcomeOf(err)
	if what == expired {
		s.expired()
	}
	if what == answered {
		return err
	}
	if cause := s.Err(); cause != nil {
		return cause
	}
	if what == inDoubt && !errors.Is(err, zk.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", zk.ErrConnectionClosed, err)
	}
	return err
}

func opError(op, path string, err error) error { return fmt.Errorf("%s %s: %w", op, path, err) }

// The requests. full is a path with the chroot, and may lie above it: missing directories of the chroot are made too.

func head(op int32, full string) *codec.Encoder {
	e := codec.NewFrame()
	e.Int32(0) // the number, which the connection fills in
	e.Int32(op)
	e.String(full)
	return e
}

// reading reads a node, with a watch if that is asked for.
func (c *config) reading(op int32, full string, watch bool) leg {
	e := head(op, full)
	e.Bool(watch)
	if op == codec.OpGetChildren2 {
		return leg{op: "getChildren", path: c.inward(full), frame: e.Frame(), check: checkNames}
	}
	return leg{op: codec.OpName(op), path: c.inward(full), frame: e.Frame()}
}

func (c *config) syncing(full string) leg {
	return leg{op: "sync", path: c.inward(full), frame: head(codec.OpSync, full).Frame()}
}

const anyVersion = -1

func (c *config) deleting(full string, version int32) leg {
	e := head(codec.OpDelete, full)
	e.Int32(version)
	return leg{op: "delete", path: c.inward(full), frame: e.Frame()}
}

func (c *config) setting(full string, data []byte, version int32) leg {
	e := head(codec.OpSetData, full)
	e.Buffer(data)
	e.Int32(version)
	return leg{op: "setData", path: c.inward(full), frame: e.Frame()}
}

func (c *config) making(full string, data []byte, acl []zk.ACL, m CreateMode) leg {
	op := int32(codec.OpCreate)
	switch {
	case m.hasTTL():
		op = codec.OpCreateTTL
	case m.flag == zk.FlagContainer:
		op = codec.OpCreateContainer
	}
	e := head(op, full)
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
	return leg{op: "create", path: c.inward(full), frame: e.Frame(), check: func(a *codec.Answer) error {
		return checkMade(full, m, a.Path)
	}}
}

// maxData bounds the data of one request. With the longest path and an ACL that is far below the 1 MiB that servers take
// by default: a server hangs up on a longer request without a word, and takes all other calls of the connection with it.
const maxData = 240<<10 - misuse.MaxPath

func checkData(data []byte) error {
	if len(data) > maxData {
		return misuse.Invalidf("%d bytes of data: the limit is %d", len(data), maxData)
	}
	return nil
}

// checking checks the version of a node and changes nothing. A quorum agrees to it, also if there is no such node.
func (c *config) checking(full string) leg {
	e := codec.NewFrame()
	e.Int32(0)
	e.Int32(codec.OpMulti)
	e.MultiHeader(codec.OpCheck, false, -1)
	e.String(full)
	e.Int32(anyVersion)
	e.MultiHeader(codec.OpError, true, -1)
	return leg{op: "multi", path: "/", frame: e.Frame()}
}

// checkMade returns what is wrong with the path of a node that the server has made. If we believed it, we could hold, or
// delete, another client's node.
func checkMade(asked string, m CreateMode, made string) error {
	rest, ok := strings.CutPrefix(made, asked)
	number, err := strconv.ParseInt(rest, 10, 32)
	if m.sequential() {
		ok = ok && err == nil && fmt.Sprintf("%010d", number) == rest
	} else {
		ok = ok && rest == ""
	}
	if !ok {
		return fmt.Errorf("asked to create %q the server made %.200q", asked, made)
	}
	return nil
}

// checkResults returns what is wrong with the results of a multi. In one that was refused each result is an error.
func checkResults(kinds []int32, results []codec.Result) error {
	if len(results) != len(kinds) {
		return fmt.Errorf("%d results of a multi of %d operations", len(results), len(kinds))
	}
	refused := slices.ContainsFunc(results, func(r codec.Result) bool { return r.Code != codec.CodeOK })
	for i, r := range results {
		if refused && r.Op != codec.OpError || !refused && r.Op != kinds[i] {
			return fmt.Errorf("result %d of a multi is of kind %d, want kind %d", i, r.Op, kinds[i])
		}
	}
	return nil
}

// checkNames returns what is wrong with the names of children. A name with a slash, or a relative one, would lead
// elsewhere when it is appended to the directory's path.
func checkNames(a *codec.Answer) error {
	if i := slices.IndexFunc(a.Names, func(n string) bool {
		return n == "" || n == "." || n == ".." || strings.IndexByte(n, '/') >= 0
	}); i >= 0 {
		return fmt.Errorf("a child called %.200q", a.Names[i])
	}
	return nil
}
