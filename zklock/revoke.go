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

// ErrNotRevocable is returned by [Revoke] if the contender does not listen: it is of a state of this module before
// 0.1.0.
var ErrNotRevocable = errors.New("contender does not listen to requests to release its lock")

// Revoke asks a contender to give its lock up, by new data of its node. nodePath is the path of that, as in
// [queue.Contender]. A waiter is asked once it holds the lock. Revoke works for all locks of this module, and for
// Curator's whose holders were made revocable. [queue.Lease.Revoked] and [queue.ErrRevoked] say how a holder hears of
// it.
//
// Revoke returns nil when the server has confirmed the message, which says nothing about what the holder does. It
// returns [ErrNotRevocable], zk.ErrNoNode if the contender is gone, [session.ErrInvalid] for a nil manager or a path
// that is no contender's, the error of ctx, [session.ErrClosed], and what the server refuses, such as zk.ErrNoAuth.
func Revoke(ctx context.Context, m *session.Manager, nodePath string) error {
	misuse.Context(ctx, "zklock: Revoke")
	if err := revoke(ctx, m, nodePath); err != nil {
		return fmt.Errorf("revoke %s: %w", nodePath, err)
	}
	return nil
}

func revoke(ctx context.Context, m *session.Manager, nodePath string) error {
	if m == nil {
		return misuse.Invalidf("nil session manager")
	}
	if err := misuse.ValidatePath(nodePath); err != nil {
		return err
	}
	if _, ok := queue.ParseNode(path.Base(nodePath)); !ok || path.Dir(nodePath) == "/" {
		return misuse.Invalidf("the last element is no contender's name")
	}
	ctx, end := queue.BeginWait(ctx)
	for pace := rounds.NewPace(m.Backoff()); ; {
		s, err := m.Session(ctx)
		if err == nil {
			err = ask(ctx, s, nodePath)
		}
		if !errors.Is(err, session.ErrUncertain) && !errors.Is(err, session.ErrLost) {
			return end(err)
		}
		if err := pace.Wait(ctx, s.Done()); err != nil { // to send it again does no harm
			return end(err)
		}
	}
}

func ask(ctx context.Context, s *session.Session, nodePath string) error {
	data, _, err := s.Get(ctx, nodePath)
	switch {
	case errors.Is(err, zk.ErrNoAuth): // it may be allowed to set what it may not read
	case err != nil:
		return err
	case nodedata.Of(data).Deaf():
		return ErrNotRevocable
	}
	_, err = s.Set(ctx, nodePath, []byte(queue.RevokeMessage), -1)
	return err
}
