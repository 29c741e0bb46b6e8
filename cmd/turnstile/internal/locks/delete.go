package locks

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// Errors of [Tree.Delete] and [Tree.Ask].
var (
	ErrGone     = errors.New("the contender has left")
	ErrReplaced = errors.New("another node has come to its place since")
	ErrUnclear  = errors.New("the node is gone: it was deleted, or the contender left at the same moment")
)

// Delete deletes the node of a contender, which must be known. If the node is not there any more, Delete fails
// with [ErrGone]. If another node is at its path, Delete leaves that node there and fails with [ErrReplaced].
// If one of the two is the case after the reply to a delete was lost, Delete fails with [ErrUnclear]. Otherwise
// it fails as Read does.
func (t *Tree) Delete(ctx context.Context, c Contender) error {
	sent := false
	err := t.change(ctx, c, func(s *session.Session, version int32) error {
		err := s.Delete(ctx, c.Path, version)
		sent = sent || errors.Is(err, session.ErrUncertain)
		return err
	})
	if sent && (errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced)) {
		return ErrUnclear
	}
	return err
}

// Ask asks a contender, which must be known, to give the lock up. It fails with [ErrGone] and [ErrReplaced] as
// Delete does, with zklock.ErrNotRevocable if the node's data says that the contender does not listen, and
// otherwise as Read does.
func (t *Tree) Ask(ctx context.Context, c Contender) error {
	if d, _ := parseData(c.Data); d.deaf() {
		return zklock.ErrNotRevocable
	}
	return t.change(ctx, c, func(s *session.Session, version int32) error {
		_, err := s.Set(ctx, c.Path, []byte(queue.RevokeMessage), version)
		return err
	})
}

// Restore undoes Ask: it writes the data of c back, unless the contender has left or other data was written since. It
// fails as Read does.
func (t *Tree) Restore(ctx context.Context, c Contender) error {
	err := t.change(ctx, c, func(s *session.Session, version int32) error {
		data, stat, err := s.Get(ctx, c.Path)
		if err != nil || string(data) != queue.RevokeMessage || stat.Version != version {
			return err
		}
		_, err = s.Set(ctx, c.Path, c.Data, version)
		return err
	})
	if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
		return nil
	}
	return err
}

// change calls do with a version of the data that only the node of c has. If that version is not the node's by
// then, or if a reply is lost, it starts again.
func (t *Tree) change(ctx context.Context, c Contender, do func(s *session.Session, version int32) error) error {
	for {
		s, err := t.Session(ctx)
		if err != nil {
			return err
		}
		version, err := pin(ctx, s, c)
		if err == nil {
			err = do(s, version)
		}
		switch {
		case errors.Is(err, zk.ErrBadVersion): // the data has changed in between
		case lost(err) && ctx.Err() == nil && !errors.Is(err, session.ErrClosed): // look again
		case errors.Is(err, zk.ErrNoNode):
			return ErrGone
		default:
			return err
		}
	}
}

// lost reports whether a request failed for want of an answer, or of a connection that lasts.
func lost(err error) bool {
	return errors.Is(err, session.ErrUncertain) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, session.ErrLost)
}

// pin returns a version of the data that the node of c has, and that no other node at its path has. It fails
// with [ErrReplaced] if another node is there.
//
// ZooKeeper makes a change on the condition that the data has a version, but not that the node is the one that a
// transaction (czxid) has created. A name with a uuid is only ever that of one node. Any other name, such as that of a
// node which was made by hand, can be that of a new node, whose version starts at 0 again. For such a name, pin writes
// the node's own data back several times. The replies say which node that was. A new node has the new version only if
// it was written to equally often, and the number is random. If a new node comes between the read and the write, that
// node gets the former node's data, and the change itself is not made.
func pin(ctx context.Context, s *session.Session, c Contender) (version int32, err error) {
	data, stat, err := s.Get(ctx, c.Path)
	switch {
	case err != nil:
		return 0, err
	case stat.Czxid != c.Token:
		return 0, ErrReplaced
	case UniqueName(c.Node):
		return stat.Version, nil
	}
	replies, err := s.Multi(ctx, rewrites(c.Path, data, stat.Version, 2+rand.IntN(99))...)
	if err != nil {
		return 0, err
	}
	if stat = replies[len(replies)-1].Stat; stat.Czxid != c.Token {
		return 0, ErrReplaced
	}
	return stat.Version, nil
}

// rewrites returns n operations that leave a node with data, if it has a version. Only the last one has the
// data, to keep the request small.
func rewrites(path string, data []byte, version int32, n int) []any {
	ops := make([]any, n)
	for i := range ops {
		op := &zk.SetDataRequest{Path: path, Version: -1}
		if i == 0 {
			op.Version = version
		}
		if i == n-1 {
			op.Data = data
		}
		ops[i] = op
	}
	return ops
}

// WaitGone waits until a contender's node is gone, or another node is at its path. It fails with ctx's error, or
// as Read does.
func (t *Tree) WaitGone(ctx context.Context, c Contender) error {
	for {
		s, err := t.Session(ctx)
		if err != nil {
			return err
		}
		_, stat, w, err := s.Watch(ctx, c.Path)
		switch {
		case errors.Is(err, zk.ErrNoNode), err == nil && stat.Czxid != c.Token:
			return nil
		case errors.Is(err, session.ErrLost), errors.Is(err, zk.ErrConnectionClosed) && ctx.Err() == nil:
			continue
		case err != nil:
			return err
		}
		select {
		case <-w.Done():
		case <-s.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
