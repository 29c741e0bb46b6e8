package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Get returns the data of a node, and its stat.
//
// Like [Session.Children] and [Session.Exists] it is repeated when the connection
// is lost, and returns when the server has answered, ctx has ended or the session
// has. Errors are go-zookeeper's, ctx's, or match [ErrLost], [ErrClosed] or
// [ErrInvalid].
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Get")
	type reply struct {
		data []byte
		stat *zk.Stat
	}
	if err := validatePath(path); err != nil {
		return nil, nil, err
	}
	r, err := do(ctx, s, RequestInfo{Op: "getData", Path: path}, always, func() (reply, error) {
		data, stat, err := s.conn.Get(s.outward(path))
		return reply{data, stat}, err
	})
	return r.data, r.stat, err
}

// Children returns the names of a node's children, in no order, and the node's
// stat. It returns and fails as Get does.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Children")
	type reply struct {
		names []string
		stat  *zk.Stat
	}
	if err := validatePath(path); err != nil {
		return nil, nil, err
	}
	r, err := do(ctx, s, RequestInfo{Op: "getChildren", Path: path}, always, func() (reply, error) {
		names, stat, err := s.conn.Children(s.outward(path))
		if err == nil {
			err = s.doubt(checkNames(names))
		}
		return reply{names, stat}, err
	})
	return r.names, r.stat, err
}

// Exists returns the stat of a node, or nil if there is no such node. It returns
// and fails as Get does.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Exists")
	if err := validatePath(path); err != nil {
		return nil, err
	}
	return do(ctx, s, RequestInfo{Op: "exists", Path: path}, always, func() (*zk.Stat, error) {
		ok, stat, err := s.conn.Exists(s.outward(path))
		if !ok {
			stat = nil
		}
		return stat, err
	})
}

// Sync returns when the server that answers this session has caught up with the
// leader. It returns and fails as Get does.
func (s *Session) Sync(ctx context.Context, path string) error {
	s.made()
	misuse.Context(ctx, "session: Session.Sync")
	if err := validatePath(path); err != nil {
		return err
	}
	_, err := do(ctx, s, RequestInfo{Op: "sync", Path: path}, always, func() (string, error) {
		return s.conn.Sync(s.outward(path))
	})
	return err
}

// Set replaces the data of a node if it has the given version (-1: any), and
// returns its new stat. A set whose reply was lost is not repeated, because the
// server may have carried it out. Its error matches [zk.ErrConnectionClosed],
// [ErrLost] or [ErrClosed]. Otherwise Set returns and fails as Get does.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Set")
	if err := errors.Join(validatePath(path), checkData(data)); err != nil {
		return nil, err
	}
	data = bytes.Clone(data) // it may be sent after ctx has ended
	return do(ctx, s, RequestInfo{Op: "setData", Path: path}, never, func() (*zk.Stat, error) {
		return s.conn.Set(s.outward(path), data, version)
	})
}

// Delete removes a node if it has the given version (-1: any). It is repeated when
// its reply was lost; a repeated one that finds no node reports success. Otherwise
// it returns and fails as Get does.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	s.made()
	misuse.Context(ctx, "session: Session.Delete")
	if err := validatePath(path); err != nil {
		return err
	}
	tries := 0
	_, err := do(ctx, s, RequestInfo{Op: "delete", Path: path}, always, func() (struct{}, error) {
		tries++
		return struct{}{}, s.sendDelete(path, version)
	})
	if errors.Is(err, zk.ErrNoNode) && tries > 1 {
		return nil
	}
	return err
}

// sendDelete makes the call of zk.Conn, and counts.
func (s *Session) sendDelete(path string, version int32) error {
	noted := s.nodes.noted(path)
	err := s.conn.Delete(s.outward(path), version)
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		s.nodes.deleted(path, noted)
	}
	return err
}

// Multi carries out all of ops, or none: *[zk.CreateRequest], *[zk.SetDataRequest],
// *[zk.DeleteRequest] and *[zk.CheckVersionRequest], with paths below the chroot.
// The requests are not changed; a create without an ACL gets that of [WithACL], and
// ephemeral ones count towards [WithMaxNodes]. It makes no containers, and no nodes with a TTL.
// It returns what each did, and the first error of those refused. A multi whose reply was
// lost is not repeated, because the server may have carried it out. Its error matches
// [zk.ErrConnectionClosed], [ErrLost] or [ErrClosed]. Otherwise Multi returns and fails as
// Get does.
func (s *Session) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Multi")
	// Copies, as they may be sent after ctx has ended.
	own, out := make([]any, len(ops)), make([]any, len(ops))
	size := 0
	for i, op := range ops {
		var err error
		var n int
		if own[i], out[i], n, err = s.copyOp(op); err != nil {
			return nil, fmt.Errorf("multi: operation %d: %w", i, err)
		}
		size += n + opOverhead
	}
	if len(ops) == 0 || size > maxData {
		return nil, invalidf("multi of %d operations and %d bytes", len(ops), size)
	}
	info := RequestInfo{Op: "multi", Path: "/"}
	results, err := do(ctx, s, info, never, func() ([]zk.MultiResponse, error) {
		if err := s.nodes.reserveOps(own); err != nil {
			return nil, err
		}
		noted := s.nodes.notedOps(own)
		results, err := s.conn.Multi(out...)
		if classify(err) == answered {
			if wrong := s.doubt(checkResults(out, results, err != nil)); wrong != nil {
				results, err = nil, wrong
			}
		}
		for i := range results {
			if made := results[i].String; made != "" {
				results[i].String = s.inward(made)
			}
		}
		s.nodes.settleOps(own, noted, results, err)
		if err != nil && classify(err) == answered && len(results) > 0 {
			err = &multiRefusal{err, results}
		}
		return results, err
	})
	var refusal *multiRefusal
	if errors.As(err, &refusal) {
		return refusal.results, err
	}
	return results, err
}

// multiRefusal is the server's refusal of a multi, which comes with results.
type multiRefusal struct {
	error
	results []zk.MultiResponse
}

func (r *multiRefusal) Unwrap() error { return r.error }

// opOverhead is more than an operation of a multi takes beside its path and data, but for
// an ACL of hundreds of entries.
const opOverhead = 256

// copyOp returns two copies of an operation of a multi, the second with the chroot on its path,
// and the size of its data. The copies share nothing with the caller's that can change.
func (s *Session) copyOp(op any) (own, out any, size int, err error) {
	switch op := op.(type) {
	case *zk.CreateRequest:
		in := *op
		in.Data, in.Acl = bytes.Clone(op.Data), slices.Clone(op.Acl)
		if len(in.Acl) == 0 {
			in.Acl = s.cfg.acl
		}
		c := in
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Data) + len(c.Path), errors.Join(validatePath(op.Path), checkMultiFlags(c.Flags))
	case *zk.SetDataRequest:
		in := *op
		in.Data = bytes.Clone(op.Data)
		c := in
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Data) + len(c.Path), validatePath(op.Path)
	case *zk.DeleteRequest:
		in, c := *op, *op
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Path), validatePath(op.Path)
	case *zk.CheckVersionRequest:
		in, c := *op, *op
		c.Path = s.outward(op.Path)
		return &in, &c, len(c.Path), validatePath(op.Path)
	}
	return nil, nil, 0, invalidf("%T is not an operation of a multi", op)
}

// checkMultiFlags refuses kinds of nodes that zk.Conn cannot make in a multi: it has no TTL
// there, and takes the result of a container's create for that of no operation at all.
func checkMultiFlags(flags int32) error {
	switch flags {
	case 0, zk.FlagEphemeral, zk.FlagSequence, zk.FlagEphemeralSequential:
		return nil
	}
	return invalidf("flags %d of a create in a multi", flags)
}
