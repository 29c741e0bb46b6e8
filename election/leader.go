package election

import (
	"context"
	"errors"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/queue"
)

// ErrNoLeader says that there was no candidate. [Election.Leader] returns it, and the sequence of
// [Election.Observe] has it.
var ErrNoLeader = errors.New("nobody leads")

// Contenders returns the leader, and behind it the other candidates in the order in which they will
// lead. The ID of each is as [WithID] sets it. Contenders fails as Contenders of a zklock.Mutex does.
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
	all, err := e.queue.Contenders(ctx, e.request.Kind)
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
	first, err := e.queue.First(ctx, e.request.Kind)
	return e.leader(first, err)
}

// leader returns the first contender of the queue as the leader. If there is none, the error is ErrNoLeader.
func (e *Election) leader(first queue.Contender, err error) (queue.Contender, error) {
	if err == nil && first.Path == "" {
		err = ErrNoLeader
	}
	if err != nil {
		return queue.Contender{}, e.failed(err)
	}
	first.ID = idOf(first.Data)
	return first, nil
}
