package session

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Get returns the data of a node, and its stat.
//
// It returns when the server has answered, ctx has ended or the session has ended. Like
// [Session.Children] and [Session.Exists], it is repeated if the connection is lost. Errors are
// those of go-zookeeper, ctx's, or match [ErrLost], [ErrClosed] or [ErrInvalid].
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Get")
	if err := validatePath(path); err != nil {
		return nil, nil, err
	}
	r, err := do(ctx, s, RequestInfo{Op: "getData", Path: path}, always, s.get(ctx, s.outward(path), false))
	return r.data, r.stat, err
}

// Children returns the names of a node's children, in no order, and the node's stat. It returns
// and fails as Get does.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Children")
	if err := validatePath(path); err != nil {
		return nil, nil, err
	}
	c, err := s.childrenOf(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	stat := *c.stat
	return slices.Clone(c.names), &stat, nil // the caller may change them
}

// childrenOf is Children for callers that change nothing of the answer.
func (s *Session) childrenOf(ctx context.Context, path string) (children, error) {
	return do(ctx, s, RequestInfo{Op: "getChildren", Path: path}, always, s.listing(ctx, s.outward(path), false))
}

// Exists returns the stat of a node, or nil if there is no such node. It returns and fails as Get
// does.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Exists")
	if err := validatePath(path); err != nil {
		return nil, err
	}
	return do(ctx, s, RequestInfo{Op: "exists", Path: path}, always, s.exists(ctx, s.outward(path), false))
}

// Sync returns when the server that the session is connected to has caught up with the leader. It
// returns and fails as Get does.
func (s *Session) Sync(ctx context.Context, path string) error {
	s.made()
	misuse.Context(ctx, "session: Session.Sync")
	if err := validatePath(path); err != nil {
		return err
	}
	_, err := do(ctx, s, RequestInfo{Op: "sync", Path: path}, always, s.sync(ctx, s.outward(path)))
	return err
}

// Set replaces the data of a node if the node has the given version (-1: any version), and
// returns the new stat.
//
// A set whose reply was lost is not repeated, because the server may have carried it out. Its
// error matches [zk.ErrConnectionClosed], [ErrLost] or [ErrClosed]. Otherwise Set returns and
// fails as Get does.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Set")
	if err := errors.Join(validatePath(path), checkData(data)); err != nil {
		return nil, err
	}
	return do(ctx, s, RequestInfo{Op: "setData", Path: path}, never, s.set(ctx, s.outward(path), data, version))
}

// Delete removes a node if it has the given version (-1: any version). It is repeated if its
// reply was lost. If a repeated delete finds no node, Delete reports success. Otherwise it
// returns and fails as Get does.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	s.made()
	misuse.Context(ctx, "session: Session.Delete")
	return s.delete(ctx, path, version, version == anyVersion)
}

// delete is Delete. among says that the first try may be sent with requests of other callers.
func (s *Session) delete(ctx context.Context, path string, version int32, among bool) error {
	if err := validatePath(path); err != nil {
		return err
	}
	tries := 0
	info := RequestInfo{Op: "delete", Path: path, batch: new(atomic.Int64)}
	batch := info.batch
	_, err := do(ctx, s, info, always, func(done func(struct{}, error)) {
		if tries++; tries > 1 || !among {
			batch = nil // this try goes alone
			info.batch.Store(0)
		}
		s.sendDelete(ctx, path, version, batch, done)
	})
	if errors.Is(err, zk.ErrNoNode) && tries > 1 {
		return nil
	}
	return err
}

// gone takes note that a node of ours is gone. Servers do not tell that to a watch if the client may not read the node.
// To all others they have told it by now.
func (s *Session) gone(path string, noted *share) {
	s.room.deleted(noted)
	s.forgetGone(path, noted)
}

func (s *Session) forgetGone(path string, noted *share) {
	if noted != nil {
		s.watches.forget(s.outward(path), nil)
	}
}

// anyVersion is the version of a delete that deletes any version of the node.
const anyVersion = -1

// sendDelete sends the request, and takes the node off the count of ephemeral nodes. batch is that of sending. done gets
// errNotSent if ctx ends before the delete has left.
func (s *Session) sendDelete(ctx context.Context, path string, version int32, batch *atomic.Int64, done func(struct{}, error)) {
	noted := s.room.noted(path)
	if noted == nil {
		batch = nil // it may be refused
	}
	s.erase(ctx, s.outward(path), version, batch)(func(_ struct{}, err error) {
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			s.gone(path, noted)
		}
		done(struct{}{}, err)
	})
}
