package election

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
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
		return nil, e.failed(err)
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
// [session.ErrClosed], and what the server refuses. Leader lists the candidates and reads the node of the first: a
// program that asks often should use [Election.Observe].
func (e *Election) Leader(ctx context.Context) (queue.Contender, error) {
	e.made()
	misuse.Context(ctx, "election: Election.Leader")
	leader, err := leaderOf(e.lock.Queue.First(ctx, e.lock.Request.Kind))
	if err != nil {
		return queue.Contender{}, e.failed(err)
	}
	return leader, nil
}

// leaderOf returns the first contender of the queue as the leader. If there is none, the error is ErrNoLeader.
func leaderOf(first queue.Contender, err error) (queue.Contender, error) {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return queue.Contender{}, fmt.Errorf("%w: %w", ErrNoLeader, err)
	case err != nil:
		return queue.Contender{}, err
	}
	if first.Path == "" {
		return first, ErrNoLeader
	}
	first.ID = idOf(first.Data)
	return first, nil
}
