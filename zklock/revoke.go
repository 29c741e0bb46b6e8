package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/maxwait"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// WithRevocable sets a function to call when somebody asks the holder to give the mutex up, with
// [Revoke] or with Curator's Revoker, whose message is the same. f is called at most once for each
// hold, with its lease, from a goroutine of its own. It is called as soon as the lease is granted and
// the request is there, also if the request came while the contender was waiting or disconnected.
//
// The request is no order: nothing else happens. The holder gives the mutex up when it suits the
// work, or keeps it. When f is called, Lock may not have returned yet, or the lease may already be
// released. If the mutex is held by Lock or Do, f should tell the work to end, and leave the Unlock
// to the goroutine that locked.
//
// Default: requests are ignored, and Revoke returns [ErrNotRevocable].
func WithRevocable(f func(*queue.Lease)) Option {
	return option(func(c *config) error {
		if f == nil {
			return fmt.Errorf("%w: WithRevocable of a nil function", session.ErrInvalid)
		}
		c.request.Revoked = func(l *place.Lease) { f((*queue.Lease)(l)) }
		return nil
	})
}

// Revoke asks a contender to give its lock up. nodePath is the path of the contender's node, as in
// [queue.Contender]. A waiter is asked once it holds the lock. Revoke replaces the data of the node.
// It works for all locks of this module and of Curator whose holders listen (WithRevocable).
//
// Revoke returns nil when the server has confirmed the message, which says nothing about what the
// holder does. It returns [ErrNotRevocable], and leaves the node as it is, if the node's data says that
// the contender does not listen. The data of this module's nodes says whether it does. Data of other
// libraries, and of a [queue.Request] with data of its own, does not, so nil can then mean that nobody listens. The same holds if the
// server does not let this client read the node.
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
	again := rounds.Pace{New: (*core.Manager)(m).Retry()}
	ctx, end := maxwait.Begin(ctx)
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
	case nodedata.Of(data).Listens() == kinds.RevocableNo:
		return ErrNotRevocable
	default:
		version = stat.Version
	}
	_, err = s.Set(ctx, nodePath, []byte(kinds.RevokeMessage), version)
	return err
}

// revocable returns an error if there can be no contender at nodePath.
func revocable(m *session.Manager, nodePath string) error {
	if m == nil {
		return fmt.Errorf("%w: nil session manager", session.ErrInvalid)
	}
	if err := misuse.ValidatePath(nodePath); err != nil {
		return err
	}
	if _, ok := kinds.ParseNode(path.Base(nodePath)); !ok || path.Dir(nodePath) == "/" {
		return fmt.Errorf("%w: the last element is no contender's name", session.ErrInvalid)
	}
	return nil
}
