package semaphore

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/nodedata"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// pin is the child that keeps the server from removing the directory while a limit of Resize is in
// force.
const pin = "limit"

// Limit returns the number of leases that is in force for everybody: the one last set by
// [Semaphore.Resize] or by hand, otherwise the one that [New] was given. Curator's layout stores no
// limit, so there Limit returns the one that New was given, without a request.
//
// Limit waits for the reply of a server. It fails with the error of ctx, [session.ErrClosed], or what
// the server refuses.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	s.called(ctx, "semaphore: Semaphore.Limit")
	if s.curator {
		return s.max, nil
	}
	c, err := s.lease.Queue.ReadConfig(ctx)
	if err != nil {
		return 0, place.Failed("limit of", s.path, err)
	}
	return s.inForce(c), nil
}

// Resize sets the number of leases for everybody, and lets in the waiters that now fit. If there are
// fewer leases than before, no holder loses one. No contender is let in then until enough leases are
// back, also if its place in the queue is ahead of present holders. A waiter that asks for more leases
// than there are fails with [session.ErrInvalid].
//
// The limit stays until the next Resize or until [Semaphore.ResetLimit], also while the semaphore is
// not used. Meanwhile New may be given any limit, and this one counts. The package documentation says
// how to change the number in the code of a fleet.
//
// Resize returns nil when the server has confirmed the limit. If ctx ends before that, Resize returns
// an error that matches ctx.Err(), and the limit may have been set. If the manager is closed, it returns
// [session.ErrClosed]. It returns [session.ErrInvalid], before any I/O, for less than one lease and in
// Curator's layout. It returns [queue.ErrConflict], and changes nothing, if the directory has data that
// is not a semaphore's. Other errors are what the server refuses.
//
// A contender decides by what its server has told it. If that server lags behind, or its news is still
// on the way, Acquire can return a moment after Resize has returned, to a contender that was let in
// before by the former limit. ZooKeeper bounds the lag by its syncLimit.
//
// The directory stays after Resize, so its sequence numbers do not start again: see
// [queue.ErrSequence]. ResetLimit lets it go. While the limit is lowered, no contender of a version of
// this module that does not know of lowered limits must wait.
func (s *Semaphore) Resize(ctx context.Context, maxLeases int) error {
	s.called(ctx, "semaphore: Semaphore.Resize")
	err := s.checkResize(maxLeases)
	if err == nil {
		err = s.setLimit(ctx, maxLeases, false)
	}
	if err != nil {
		return place.Failed("resize", s.path, err)
	}
	return nil
}

// ResetLimit undoes a limit that was set with [Semaphore.Resize] or by hand. From then on the limit is
// the one that New was given for this Semaphore, and all others must be given the same. ResetLimit
// returns and fails as Resize does.
func (s *Semaphore) ResetLimit(ctx context.Context) error {
	s.called(ctx, "semaphore: Semaphore.ResetLimit")
	err := s.checkResize(s.max)
	if err == nil {
		err = s.setLimit(ctx, s.max, true)
	}
	if err != nil {
		return place.Failed("reset the limit of", s.path, err)
	}
	return nil
}

func (s *Semaphore) checkResize(maxLeases int) error {
	if s.curator {
		return fmt.Errorf("%w: Curator's layout stores no limit", session.ErrInvalid)
	}
	return checkCount(maxLeases)
}

// foreign fails if the directory has data that is not a semaphore's.
func foreign(c kinds.Config) error {
	if _, ours := nodedata.ParseLimit(c.Data); len(c.Data) > 0 && !ours {
		return fmt.Errorf("%w: the directory's data %.40q is not a semaphore's", queue.ErrConflict, c.Data)
	}
	return nil
}

func (s *Semaphore) setLimit(ctx context.Context, maxLeases int, byDefault bool) error {
	return s.lease.Queue.Reconfigure(ctx, pin, !byDefault, func(old kinds.Config) ([]byte, error) {
		if err := foreign(old); err != nil {
			return nil, err
		}
		l, ours := nodedata.ParseLimit(old.Data)
		if !ours { // no limit yet; the version tells whether there was one before
			l = nodedata.Limit{MaxLeases: maxLeases}
		}
		return l.Next(maxLeases, byDefault, old).Encode(), nil
	})
}
