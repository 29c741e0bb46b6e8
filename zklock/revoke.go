package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Revoke asks a contender to give its lock up. nodePath is the path of the contender's node, as in [queue.Contender]. A
// waiter is asked once it holds the lock. Revoke replaces the data of the node. It works for all locks of this module,
// and for those locks of Curator whose holders were made revocable. [queue.Lease.Revoked] says how a holder hears of
// it. The context of a Do ends, with a cause that matches [queue.ErrRevoked].
//
// Revoke returns nil when the server has confirmed the message, which says nothing about what the
// holder does. It returns [ErrNotRevocable], and leaves the node as it is, if the node's data says that
// the contender does not listen. Only states of this module before 0.1.0 wrote that.
//
// Revoke returns zk.ErrNoNode if the contender is gone. Other errors are the error of ctx,
// [session.ErrClosed], and what the server refuses, such as zk.ErrNoAuth. It returns
// [session.ErrInvalid], before any I/O, for a nil manager, a bad path, and a path whose last element
// is no contender's name.
func Revoke(ctx context.Context, m *session.Manager, nodePath string) error {
	misuse.Context(ctx, "zklock: Revoke")
	if err := revocable(m, nodePath); err != nil {
		return fmt.Errorf("revoke %s: %w", nodePath, err)
	}
	again := rounds.Pace{New: m.BackOff}
	ctx, end := queue.BeginWait(ctx)
	for {
		s, err := m.Session(ctx)
		if err == nil {
			err = ask(ctx, s, nodePath)
		}
		// Perhaps the data was set. It does no harm to set it again.
		lost := errors.Is(err, session.ErrUncertain) && !errors.Is(err, session.ErrClosed) || errors.Is(err, session.ErrLost)
		if (lost || errors.Is(err, zk.ErrBadVersion)) && ctx.Err() == nil {
			if err = again.Wait(ctx, s.Done()); err == nil {
				continue
			}
		}
		if err = end(err); err != nil {
			return fmt.Errorf("revoke %s: %w", nodePath, err)
		}
		return nil
	}
}

// ask sends the message, unless the node's data says that nobody listens. It fails with
// zk.ErrBadVersion if the data has changed since.
func ask(ctx context.Context, s *session.Session, nodePath string) error {
	version := int32(-1)
	data, stat, err := s.Get(ctx, nodePath)
	switch {
	case errors.Is(err, zk.ErrNoAuth): // it may be allowed to set what it may not read
	case err != nil:
		return err
	case nodedata.Of(data).Deaf():
		return ErrNotRevocable
	default:
		version = stat.Version
	}
	_, err = s.Set(ctx, nodePath, []byte(queue.RevokeMessage), version)
	return err
}

// revocable returns an error if there can be no contender at nodePath.
func revocable(m *session.Manager, nodePath string) error {
	if m == nil {
		return misuse.Invalidf("nil session manager")
	}
	if err := misuse.ValidatePath(nodePath); err != nil {
		return err
	}
	if _, ok := queue.ParseNode(path.Base(nodePath)); !ok || path.Dir(nodePath) == "/" {
		return misuse.Invalidf("the last element is no contender's name")
	}
	return nil
}
