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

// repeat is the only retry loop. It waits for a connection, and tries once over it. It returns the server's answer or
// refusal, and the error of ctx or of the session as soon as that ends. Otherwise it tries again, unless the error
// matches ErrUncertain.
func repeat[T any](ctx context.Context, s *Session, op, path string, try func(*link) (T, error)) (T, error) {
	var none T
	for tries, waits := 1, s.cfg.waits; ; tries++ {
		l, err := s.ready(ctx)
		if err != nil {
			return none, opError(op, path, err)
		}
		r, err := try(l)
		switch {
		case err == nil:
			return r, nil
		case outcomeOf(err) == answered, errors.Is(err, ErrTooLong), errors.Is(err, ErrUncertain):
			return r, opError(op, path, err)
		case errors.Is(err, errNotSent):
			select {
			case <-l.cut:
				continue
			default: // a watch was shared with a call whose connection had ended
			}
		}
		s.traceRetry(ctx, op, tries, err)
		if err := rounds.Until(ctx, s.life.Done(), waits.Next()); err != nil {
			return none, opError(op, path, err)
		}
	}
}

// leg is one request of a flight: of requests that leave together.
type leg struct {
	wire.Call
	op, path string           // for hooks and errors; path has no chroot
	ended    func(wire.Reply) // at the end, in the order of the stream; may not block; may be nil
	kept     bool             // others wait for the answer too, so it is not withdrawn

	// Set when fly has returned.
	answered bool
	reply    wire.Reply // and err: if answered
	err      error
	doubt    bool // the servers may have carried it out, or may yet
	traced   func(error)
}

// request sends one request until there is an answer, or once if again is false.
func (s *Session) request(ctx context.Context, again bool, one *leg) (wire.Reply, error) {
	return repeat(ctx, s, one.op, one.path, func(l *link) (wire.Reply, error) {
		try := *one
		err := s.fly(ctx, l, &try)
		if try.doubt && !again {
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		return try.reply, err
	})
}

// fly sends requests one right behind the other. It returns the first error when all have ended, or ctx or the
// session has: what has not left by then never leaves, except a watch that others share (kept).
func (s *Session) fly(ctx context.Context, l *link, flight ...*leg) (err error) {
	type end struct {
		*leg
		r wire.Reply
	}
	calls, ended := make([]*wire.Call, len(flight)), make(chan end, len(flight))
	for i, one := range flight {
		one.traced = s.traceRequest(ctx, one.op, one.path)
		one.Done = func(r wire.Reply) {
			if one.ended != nil {
				one.ended(r)
			}
			ended <- end{one, r}
		}
		calls[i] = &one.Call
	}
	l.conn.Start(calls...)
	for range flight {
		select {
		case one := <-ended:
			one.answered, one.reply, one.err = true, one.r, s.verdict(&one.r)
			one.doubt = one.err != nil && outcomeOf(one.err) == inDoubt || one.r.Err != nil && !errors.Is(one.r.Err, wire.ErrNotSent)
			err = cmp.Or(err, one.err)
			if one.err == nil && one.r.Results != nil {
				one.traced(firstError(one.r.Results))
			} else {
				one.traced(one.err)
			}
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.life.Done():
			err = s.Err()
		}
		for _, one := range flight {
			if one.answered {
				continue
			}
			one.traced(err)
			one.doubt = one.kept || !l.conn.Withdraw(&one.Call)
			if !one.doubt && one.ended != nil {
				one.ended(wire.Reply{Err: wire.ErrNotSent})
			}
		}
		return err
	}
	return err
}

// firstError returns why a multi was refused: the other operations have an error too.
func firstError(results []codec.Result) (err error) {
	for _, r := range results {
		if r.Code != codec.CodeOK {
			if err = errorOf(r.Code); r.Code != codec.CodeRuntimeInconsistency {
				break
			}
		}
	}
	return err
}

// verdict returns the error of a reply. If the session has ended, that is the cause, even before an event says so.
func (s *Session) verdict(r *wire.Reply) error {
	err := zk.ErrConnectionClosed
	switch {
	case r.Err == nil && r.Code == codec.CodeOK:
		return nil
	case r.Err == nil:
		err = errorOf(r.Code)
	case errors.Is(r.Err, ErrTooLong):
		return r.Err
	case errors.Is(r.Err, wire.ErrNotSent):
		err = errNotSent
	case errors.Is(r.Err, wire.ErrLongest):
		err = fmt.Errorf("%w: %w", zk.ErrConnectionClosed, r.Err)
	}
	what := outcomeOf(err)
	if what == answered {
		return err
	}
	if what == expired {
		s.expired()
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

// The requests. Their paths are below the chroot, which is added here.

func (c *config) head(op int32, path string) *codec.Encoder {
	e := codec.NewFrame()
	e.Int32(0) // the connection fills in the number
	e.Int32(op)
	e.String(c.outward(path))
	return e
}

func legOf(op, path string, e *codec.Encoder) *leg {
	return &leg{op: op, path: path, Call: wire.Call{Frame: e.Frame()}}
}

type readKind int8

const (
	getData readKind = iota
	getChildren
	exists
)

var reads = [...]struct {
	name string
	op   int32
}{getData: {"getData", codec.OpGetData}, getChildren: {"getChildren", codec.OpGetChildren2}, exists: {"exists", codec.OpExists}}

func (c *config) reading(kind readKind, path string, watch bool) *leg {
	e := c.head(reads[kind].op, path)
	e.Bool(watch)
	one := legOf(reads[kind].name, path, e)
	if kind == getChildren {
		one.Check = checkNames
	}
	return one
}

func (c *config) syncing(path string) *leg { return legOf("sync", path, c.head(codec.OpSync, path)) }

const anyVersion = -1

func (c *config) deleting(path string, version int32) *leg {
	e := c.head(codec.OpDelete, path)
	e.Int32(version)
	return legOf("delete", path, e)
}

func (c *config) setting(path string, data []byte, version int32) *leg {
	e := c.head(codec.OpSetData, path)
	e.Buffer(data)
	e.Int32(version)
	return legOf("setData", path, e)
}

func (c *config) making(path string, data []byte, acl []zk.ACL, m CreateMode) *leg {
	op := cmp.Or(m.op, codec.OpCreate)
	if m.flag == zk.FlagContainer {
		op = codec.OpCreateContainer
	}
	e := c.head(op, path)
	e.Buffer(data)
	e.Int32(int32(len(acl)))
	for _, one := range acl {
		e.Int32(one.Perms)
		e.String(one.Scheme)
		e.String(one.ID)
	}
	e.Int32(m.flag)
	if m.op == codec.OpCreateTTL {
		e.Int64(m.ttl.Milliseconds())
	}
	one, asked := legOf("create", path, e), c.outward(path)
	one.Check = func(a *codec.Answer) error { return checkMade(asked, m.numbered, a.Path) }
	return one
}

// maxData bounds the data of one request, far below jute.maxbuffer: a server hangs up on a longer one without a word,
// and all other calls of the connection are lost.
const maxData = 240<<10 - misuse.MaxPath

func checkData(data []byte) error {
	if len(data) > maxData {
		return misuse.Invalidf("%d bytes of data: the limit is %d", len(data), maxData)
	}
	return nil
}

// checking checks that a node exists: a quorum agrees, and nothing is changed.
func (c *config) checking(path string) *leg {
	return &leg{op: "multi", path: "/", Call: wire.Call{Frame: codec.AgreeFrame(0, c.outward(path))}}
}

// checkMade guards against a server that has made another path. If we believed it, we could hold, or delete, another
// client's node.
func checkMade(asked string, numbered bool, made string) error {
	rest, ok := strings.CutPrefix(made, asked)
	if numbered {
		number, err := strconv.ParseInt(rest, 10, 32)
		ok = ok && err == nil && fmt.Sprintf("%010d", number) == rest
	} else {
		ok = made == asked
	}
	if !ok {
		return fmt.Errorf("asked to create %q the server made %.200q", asked, made)
	}
	return nil
}

// checkResults fails unless the results are of these kinds, or all of them errors.
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

// checkNames fails if a child's name leads out of the directory.
func checkNames(a *codec.Answer) error {
	if i := slices.IndexFunc(a.Names, func(n string) bool {
		return n == "" || n == "." || n == ".." || strings.IndexByte(n, '/') >= 0
	}); i >= 0 {
		return fmt.Errorf("a child called %.200q", a.Names[i])
	}
	return nil
}
