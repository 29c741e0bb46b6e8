package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// WithRevocable sets what to call when somebody asks for the mutex: with [Revoke], or with
// Curator's Revoker, whose message is the same. It is called at most once for each hold, with
// its lease, from a goroutine of its own, as soon as the lease is granted and the request is
// there; also when that came while this contender was still waiting, or disconnected. A
// request is not an order: nothing else happens, and the holder gives the mutex up, by Unlock
// or by the lease's Release, when it suits the work, or does not.
//
// The lease can be one that Lock has not yet returned with, and one that has been given up by
// the time f looks at it. Who came in by Lock or Do best has f tell the work to end, and
// leaves the Unlock to whoever locked. Default: requests are ignored.
func WithRevocable(f func(*queue.Lease)) Option {
	return option(func(m *Mutex) error {
		if f == nil {
			return fmt.Errorf("%w: WithRevocable of nil", session.ErrInvalid)
		}
		m.revoked = f
		return nil
	})
}

// Revoke asks a contender to give its lock up: the holder, or one who waits, who is asked once
// he holds. nodePath is that of the contender's node, as in [queue.Contender]. It works for all
// locks of this module and of Curator whose holder listens; it replaces the data of the node.
//
// It returns when the server has confirmed that the message is there, which says nothing of
// what the holder does. It fails with zk.ErrNoNode when the contender is gone, with ctx's
// error, [session.ErrClosed], or what the server refuses, such as zk.ErrNoAuth; and with
// [session.ErrInvalid], before any I/O, for a nil manager, a bad path, and one whose last
// element is no contender's name.
func Revoke(ctx context.Context, m *session.Manager, nodePath string) error {
	misuse.Context(ctx, "zklock: Revoke")
	if err := revocable(m, nodePath); err != nil {
		return fmt.Errorf("zklock: revoke: %w", err)
	}
	again := rounds.Pace{New: plumbing.OfManager(m).Retry()}
	for {
		s, err := m.Session(ctx)
		if err == nil {
			_, err = s.Set(ctx, nodePath, []byte(queue.RevokeMessage), -1)
		}
		// Whether it was set is not known, and it does no harm to set it again.
		if plumbing.Uncertain(err) && ctx.Err() == nil && !errors.Is(err, session.ErrClosed) {
			if err = again.Wait(ctx, s.Done()); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("revoke %s: %w", nodePath, err)
		}
		return nil
	}
}

func revocable(m *session.Manager, nodePath string) error {
	if m == nil {
		return fmt.Errorf("%w: nil session manager", session.ErrInvalid)
	}
	if err := plumbing.ValidatePath(nodePath); err != nil {
		return err
	}
	if _, ok := queue.ParseNode(path.Base(nodePath)); !ok || path.Dir(nodePath) == "/" {
		return fmt.Errorf("%w: %q is no contender's node", session.ErrInvalid, nodePath)
	}
	return nil
}
