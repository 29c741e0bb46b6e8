package core

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// Get is that of session.Session.
func (s *Session) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, nil, err
	}
	r, err := do(ctx, s, hooks.RequestInfo{Op: "getData", Path: path}, always, s.get(ctx, s.outward(path)))
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
	return do(ctx, s, hooks.RequestInfo{Op: "exists", Path: path}, always, s.exists(ctx, s.outward(path)))
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
	_, err := do(ctx, s, info, erasing, func(done func(struct{}, error)) {
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

// sendDelete sends the request, and takes the node off the count of ephemeral nodes. batch is that of outbox.Call.
// done gets errNotSent if ctx ends before the delete has left.
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

// ACL is that of session.Session.
func (s *Session) ACL(ctx context.Context, path string) ([]zk.ACL, error) {
	if err := misuse.ValidatePath(path); err != nil {
		return nil, err
	}
	return do(ctx, s, hooks.RequestInfo{Op: "getACL", Path: path}, always, s.getACL(ctx, s.outward(path)))
}

func (s *Session) getACL(ctx context.Context, full string) starter[[]zk.ACL] {
	list := func(a *codec.Answer) ([]zk.ACL, error) { return a.ACL, nil }
	return call(ctx, s, false, outbox.Call{Frame: request(codec.OpGetACL, full).Frame()}, list)
}

// SharedSync returns when the server that the session is connected to has caught up with the leader
// by a sync that was sent after a moment, which Creation.Syncs has returned. Callers share such a
// sync: one is enough for all whose replies were lost with a connection. SharedSync fails as
// Session.Sync does.
func (s *Session) SharedSync(ctx context.Context, path string, after int64) error {
	info := hooks.RequestInfo{Op: "sync", Path: path}
	for {
		one, first := s.syncs.join(after, s.present())
		if first {
			return s.leadSync(ctx, info, one)
		}
		select {
		case <-one.done:
			if one.ok {
				return nil
			}
			// The caller that should have sent it has given up. Others try in its place.
		case <-ctx.Done():
			return opError(info, ctx.Err())
		case <-s.life.Done():
			return opError(info, s.Err())
		}
	}
}

// newSync is sharedSync for a caller that needs a sync which is sent from now on.
func (s *Session) newSync(ctx context.Context, path string) error {
	return s.SharedSync(ctx, path, s.syncs.mark())
}

// leadSync sends a sync, for its caller and those that share it.
func (s *Session) leadSync(ctx context.Context, info hooks.RequestInfo, one *sharedSync) error {
	defer close(one.done)
	defer s.syncs.leave(one) // if it was not sent
	type answer struct{ over *wire.Conn }
	got, err := do(ctx, s, info, always, func(done func(answer, error)) {
		s.syncs.send(one)
		over := s.present()
		s.sync(ctx, s.outward(info.Path))(func(_ struct{}, err error) {
			if over != s.present() {
				over = nil
			}
			done(answer{over}, err)
		})
	})
	one.over = got.over
	one.ok = err == nil
	return err
}
