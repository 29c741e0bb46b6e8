package election

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// ErrNoLeader says that there was no candidate. [Election.Leader] returns it, and the sequence of
// [Election.Observe] has it.
var ErrNoLeader = errors.New("nobody leads")

// Contenders returns the leader, and behind it the other candidates in the order in which they will
// lead. The ID of each is as [WithID] sets it. Contenders fails as Contenders of a [zklock.Mutex] does.
func (e *Election) Contenders(ctx context.Context) ([]queue.Contender, error) {
	e.made()
	misuse.Context(ctx, "election: Election.Contenders")
	all, err := e.contenders(ctx)
	if err != nil {
		return nil, e.failed(err, "contenders of "+e.Path())
	}
	return all, nil
}

func (e *Election) contenders(ctx context.Context) ([]queue.Contender, error) {
	all, err := e.mutex.Contenders(ctx)
	for i := range all {
		all[i].ID = idOf(all[i].Data)
	}
	return all, err
}

// Leader returns the candidate that leads, as it was at a moment that has passed. If there is no
// candidate, the error matches [ErrNoLeader]. Other errors are the error of ctx, [queue.ErrConflict],
// [session.ErrClosed], and what the server refuses. Leader reads the nodes of all candidates: a program
// that asks often should use [Election.Observe].
func (e *Election) Leader(ctx context.Context) (queue.Contender, error) {
	e.made()
	misuse.Context(ctx, "election: Election.Leader")
	c, err := e.leader(ctx)
	if err != nil {
		return queue.Contender{}, e.failed(err, "contenders of "+e.Path())
	}
	return c, nil
}

func (e *Election) leader(ctx context.Context) (queue.Contender, error) {
	var pace rounds.Pace
	for {
		if err := pace.Wait(ctx, nil); err != nil {
			return queue.Contender{}, err
		}
		all, err := e.contenders(ctx)
		if errors.Is(err, zk.ErrNoNode) {
			return queue.Contender{}, fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
		if err != nil {
			return queue.Contender{}, err
		}
		if i := slices.IndexFunc(all, func(c queue.Contender) bool { return c.Holder }); i >= 0 {
			return all[i], nil
		}
		// The list omits candidates that have left since the directory was listed. If that was the
		// leader, another one leads by now.
		vacant, err := e.vacant(ctx)
		if err != nil {
			return queue.Contender{}, err
		}
		if vacant {
			return queue.Contender{}, ErrNoLeader
		}
	}
}

// vacant reports whether a listing shows no candidate at all.
func (e *Election) vacant(ctx context.Context) (bool, error) {
	s, err := e.Manager().Session(ctx)
	if err != nil {
		return false, err
	}
	names, _, err := s.Children(ctx, e.Path())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return true, nil
	case errors.Is(err, session.ErrLost):
		return false, nil // ask again, in the next session
	case err != nil:
		return false, err
	}
	isCandidate := func(name string) bool { _, ok := queue.ParseNode(name); return ok }
	return !slices.ContainsFunc(names, isCandidate), nil
}
