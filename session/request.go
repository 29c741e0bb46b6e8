package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Get returns the data of a node, and its stat.
//
// It returns when the server has answered, ctx has ended or the session has ended. Like [Session.Children] and
// [Session.Exists], it is repeated if the connection is lost. Errors are those of go-zookeeper, ctx's, or match [ErrLost],
// [ErrClosed] or [ErrInvalid].
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Get")
	r, err := s.read(ctx, "getData", path, reading(codec.OpGetData, s.check().cfg.outward(path), false))
	return r.Data, r.Stat, err
}

// Children returns the names of a node's children, in no order, and the node's stat. It returns and fails as Get does.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Children")
	r, err := s.read(ctx, "getChildren", path, reading(codec.OpGetChildren2, s.check().cfg.outward(path), false))
	if err != nil {
		return nil, nil, err
	}
	return slices.Clone(r.Names), copyStat(r.Stat), nil // others may share the answer
}

// Exists returns the stat of a node, or nil if there is no such node. It returns and fails as Get does.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	misuse.Context(ctx, "session: Session.Exists")
	r, err := s.read(ctx, "exists", path, reading(codec.OpExists, s.check().cfg.outward(path), false))
	return r.Stat, ignoreNoNode(err)
}

// ACL returns the access control list of a node. To a client without the right ADMIN to the node, servers show "x" in place
// of the hash in an entry with the scheme "digest". It returns and fails as Get does, with [zk.ErrNoAuth] for a client that
// has neither the right READ nor ADMIN.
func (s *Session) ACL(ctx context.Context, path string) ([]zk.ACL, error) {
	misuse.Context(ctx, "session: Session.ACL")
	r, err := s.read(ctx, "getACL", path, sent{head(codec.OpGetACL, s.check().cfg.outward(path)).Frame(), nil})
	return r.ACL, err
}

// Sync returns when the server that the session is connected to has caught up with the leader. It returns and fails as
// Get does.
func (s *Session) Sync(ctx context.Context, path string) error {
	misuse.Context(ctx, "session: Session.Sync")
	_, err := s.read(ctx, "sync", path, syncing(s.check().cfg.outward(path)))
	return err
}

func (s *Session) read(ctx context.Context, op, path string, one sent) (wire.Reply, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return wire.Reply{}, err
	}
	return repeat(ctx, s, op, path, true, func(l *link) (wire.Reply, bool, error) {
		return s.try(ctx, l, flight{{op: op, path: path, sent: one}})
	})
}

func copyStat(s *zk.Stat) *zk.Stat {
	if s == nil {
		return nil
	}
	own := *s
	return &own
}

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
	op, path string // for hooks
	sent
	first  bool             // see wire.Call
	shared **Watch          // if it is not nil, the request sets the shared watch on the data of path, or takes the one that is there
	ended  func(wire.Reply) // called with the end, in the order of the stream; must not block; may be nil
}

// sent is a frame and the check of its answer: see wire.Call.
type sent struct {
	frame []byte
	check func(*codec.Answer) error
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
