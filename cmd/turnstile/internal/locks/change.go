package locks

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Errors of [Tree.Delete] and [Tree.Ask].
var (
	ErrGone     = errors.New("the contender has left")
	ErrReplaced = errors.New("another node has come to its place since")
	ErrUnclear  = errors.New("the node is gone: it was deleted, or the contender left at the same moment")
)

// Delete deletes the node of a contender. If the node is not there any more, Delete fails with [ErrGone]. If another node
// is at its path, Delete leaves that node there and fails with [ErrReplaced]. If one of the two is the case after the reply
// to a delete was lost, Delete fails with [ErrUnclear]. Otherwise it fails as Read does.
func (t *Tree) Delete(ctx context.Context, c Contender) error {
	sent := false
	err := t.change(ctx, c, func(s *session.Session, stat *zk.Stat, _ []byte) error {
		err := s.Delete(ctx, c.Path, stat.Version)
		sent = sent || errors.Is(err, session.ErrUncertain)
		return err
	})
	if sent && (errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced)) {
		return ErrUnclear
	}
	return err
}

// Ask asks a contender, which must be known, to give the lock up. It fails as Delete does.
func (t *Tree) Ask(ctx context.Context, c Contender) error {
	return t.change(ctx, c, func(s *session.Session, stat *zk.Stat, _ []byte) error {
		_, err := s.Set(ctx, c.Path, []byte(queue.RevokeMessage), stat.Version)
		return err
	})
}

// Restore undoes Ask: it writes the data of c back, unless the contender has left or other data was written since. It
// fails as Read does.
func (t *Tree) Restore(ctx context.Context, c Contender) error {
	err := t.change(ctx, c, func(s *session.Session, stat *zk.Stat, data []byte) error {
		if string(data) != queue.RevokeMessage {
			return nil
		}
		_, err := s.Set(ctx, c.Path, c.Data, stat.Version)
		return err
	})
	if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
		return nil
	}
	return err
}

// change calls do with the stat and the data of the node of c. If the node has changed by then, or if a reply is lost, it
// starts again. A name with a uuid is only ever that of one node. At another name, such as that of a
// node which was made by hand, a new node can come between the read and the change, and have the same version.
func (t *Tree) change(ctx context.Context, c Contender, do func(s *session.Session, stat *zk.Stat, data []byte) error) (err error) {
	ctx, cancel := t.bounded(ctx, "the node of the contender")
	defer cancel()
	defer func() { err = unreachable(ctx, err) }()
	for {
		s, err := t.Manager.Session(ctx)
		if err != nil {
			return err
		}
		data, stat, err := s.Get(ctx, c.Path)
		if err == nil && stat.Czxid != c.Token {
			return ErrReplaced
		}
		if err == nil {
			err = do(s, stat, data)
		}
		lost := errors.Is(err, session.ErrUncertain) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, session.ErrLost)
		switch {
		case errors.Is(err, zk.ErrBadVersion): // the data has changed in between
		case lost && ctx.Err() == nil && !errors.Is(err, session.ErrClosed): // look again
		case errors.Is(err, zk.ErrNoNode):
			return ErrGone
		default:
			return err
		}
	}
}

// WaitGone waits until a contender's node is gone, or another node is at its path. It fails with ctx's error, or
// as Read does.
func (t *Tree) WaitGone(ctx context.Context, c Contender) error {
	for {
		var stat *zk.Stat
		err := t.do(ctx, func(s *session.Session) (err error) { stat, err = s.Exists(ctx, c.Path); return err })
		if err != nil || stat == nil || stat.Czxid != c.Token {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
