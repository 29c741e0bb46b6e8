package semaphore

import (
	"context"
	"fmt"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// pin is the child that keeps the directory of a semaphore whose limit somebody has set.
const pin = "limit"

// Limit returns the number of leases that is in force for all who use the semaphore: what was
// set last by [Semaphore.Resize] or by hand, or else what [New] was given. In Curator's layout,
// which keeps no limit, it returns what New was given, and asks nobody.
//
// It returns when a server has answered, and fails with ctx's error, [session.ErrClosed] or
// what the server refuses.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.Limit")
	if s.curator {
		return s.max, nil
	}
	c, err := s.q.Config(ctx)
	if err != nil {
		return 0, fmt.Errorf("limit of semaphore %s: %w", s.path, err)
	}
	return s.inForce(c), nil
}

// Resize sets the number of leases for all who use the semaphore, and lets in the contenders
// that wait and now fit. Fewer leases revoke none: nobody comes in until enough are back, also
// if its place in the queue is ahead of holders that came in before. A contender that waits
// for more than there are then fails with [session.ErrInvalid].
//
// The new limit stays until another Resize, or until [Semaphore.ResetLimit]; that nobody uses
// the semaphore for a while changes nothing. Meanwhile any limit may be given to New: this one
// counts. See the package's documentation for how a fleet changes the number in its code.
//
// It returns when the server has confirmed it; when ctx ends before, with an error that
// matches ctx.Err(), and it may have been carried out; or with [session.ErrClosed]. It fails
// with [session.ErrInvalid], before any I/O, for less than one lease and in Curator's layout;
// with [queue.ErrConflict] if the directory has data that is not a semaphore's, which it
// leaves alone; and with what the server refuses.
//
// A contender decides by what its server has told it. One whose server lags behind the others,
// or whose news is still under way, can return from Acquire a moment after Resize has returned,
// though it was let in before, by the former limit. ZooKeeper bounds the lag by its syncLimit.
//
// The directory stays, so its sequence numbers do not start again: see [queue.ErrSequence].
// ResetLimit lets it go. Contenders of a version of this module that does not know of lowered
// limits must not wait while one is lowered.
func (s *Semaphore) Resize(ctx context.Context, maxLeases int) error {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.Resize")
	err := s.checkResize(maxLeases)
	if err == nil {
		err = s.setLimit(ctx, maxLeases, false)
	}
	if err != nil {
		return fmt.Errorf("resize semaphore %s: %w", s.path, err)
	}
	return nil
}

// ResetLimit takes back what [Semaphore.Resize] has set, or somebody by hand: from then on the
// limit is the one that New was given for this Semaphore, and must be the same for all others
// again. It returns and fails as Resize does.
func (s *Semaphore) ResetLimit(ctx context.Context) error {
	s.made()
	misuse.Context(ctx, "semaphore: Semaphore.ResetLimit")
	err := s.checkResize(s.max)
	if err == nil {
		err = s.setLimit(ctx, s.max, true)
	}
	if err != nil {
		return fmt.Errorf("reset the limit of semaphore %s: %w", s.path, err)
	}
	return nil
}

func (s *Semaphore) checkResize(maxLeases int) error {
	if s.curator {
		return fmt.Errorf("%w: Curator's layout keeps no limit that could be changed", session.ErrInvalid)
	}
	return checkCount(maxLeases)
}

// foreign fails if the directory has data that is not a semaphore's.
func foreign(c queue.Config) error {
	if _, ours := parseLimit(c.Data); len(c.Data) > 0 && !ours {
		return fmt.Errorf("%w: its data %.40q is not a semaphore's", queue.ErrConflict, c.Data)
	}
	return nil
}

func (s *Semaphore) setLimit(ctx context.Context, maxLeases int, byDefault bool) error {
	return s.q.ReconfigurePinned(ctx, pin, !byDefault, func(old queue.Config) ([]byte, error) {
		if err := foreign(old); err != nil {
			return nil, err
		}
		l, ours := parseLimit(old.Data)
		if !ours { // no limit; whether there was one before, the version tells
			l = limit{MaxLeases: maxLeases}
		}
		return l.next(maxLeases, byDefault, old).encode(), nil
	})
}
