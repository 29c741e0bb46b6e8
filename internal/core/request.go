package core

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
)

// Get is that of session.Session.
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, err
	}
	r, err := do(ctx, s, hooks.RequestInfo{Op: "getData", Path: path}, always, s.get(ctx, s.outward(path), false))
	return r.data, r.stat, err
}

// Children returns the names of a node's children, in no order, and the node's stat. The caller must not change them:
// thousands of contenders may share them.
func (s *Session) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, err
	}
	info := hooks.RequestInfo{Op: "getChildren", Path: path}
	c, err := do(ctx, s, info, always, s.listing(ctx, s.outward(path), false))
	return c.names, c.stat, err
}

// Exists is that of session.Session.
func (s *Session) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	return do(ctx, s, hooks.RequestInfo{Op: "exists", Path: path}, always, s.exists(ctx, s.outward(path), false))
}

// Sync is that of session.Session.
func (s *Session) Sync(ctx context.Context, path string) error {
	if err := misuse.ValidatePath(path); err != nil {
		return err
	}
	_, err := do(ctx, s, hooks.RequestInfo{Op: "sync", Path: path}, always, s.sync(ctx, s.outward(path)))
	return err
}

// Set is that of session.Session.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (*zk.Stat, error) {
	if err := errors.Join(misuse.ValidatePath(path), checkData(data)); err != nil {
		return nil, err
	}
	return do(ctx, s, hooks.RequestInfo{Op: "setData", Path: path}, never, s.set(ctx, s.outward(path), data, version))
}

// Delete is that of session.Session.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	return s.delete(ctx, path, version, version == anyVersion)
}

// delete is Delete. among says that the first try may be sent with requests of other callers.
func (s *Session) delete(ctx context.Context, path string, version int32, among bool) error {
	if err := misuse.ValidatePath(path); err != nil {
		return err
	}
	tries := 0
	number := new(atomic.Int64)
	info, batch := hooks.RequestInfo{Op: "delete", Path: path}.WithBatch(number), number
	_, err := do(ctx, s, info, always, func(done func(struct{}, error)) {
		if tries++; tries > 1 || !among {
			batch = nil // this try goes alone
			number.Store(0)
		}
		s.sendDelete(ctx, path, version, batch, done)
	})
	if errors.Is(err, zk.ErrNoNode) && tries > 1 {
		return nil
	}
	return err
}

// anyVersion is the version of a delete that deletes any version of the node.
const anyVersion = -1

// sendDelete sends the request, and takes the node off the count of ephemeral nodes. batch is that of sending. done gets
// errNotSent if ctx ends before the delete has left.
func (s *Session) sendDelete(ctx context.Context, path string, version int32, batch *atomic.Int64, done func(struct{}, error)) {
	noted := s.room.At(path)
	if noted == nil {
		batch = nil // it may be refused
	}
	s.erase(ctx, s.outward(path), version, batch)(func(_ struct{}, err error) {
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			s.room.Gone(noted)
		}
		done(struct{}{}, err)
	})
}
