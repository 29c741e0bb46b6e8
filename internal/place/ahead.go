package place

import (
	"context"
	"slices"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/decide"
	"github.com/turnstile-go/turnstile/kinds"
)

// Ahead returns the contenders ahead of one of ours, in order. It returns none if the node of ours is gone. It
// fails when the session of that node has ended.
func (q *Queue) Ahead(ctx context.Context, s *core.Session, kind *kinds.Kind, ours kinds.Node) ([]kinds.Node, error) {
	pace := q.newPace()
	for {
		nodes, _, err := q.listed(ctx, s, kind)
		if err == nil {
			i, there := slices.BinarySearchFunc(nodes, ours, decide.Compare)
			if !there {
				return nil, nil
			}
			return nodes[:i], nil
		}
		if !isPassing(err) || s.Err() != nil {
			return nil, err
		}
		if err := pace.Wait(ctx, s.Done()); err != nil {
			return nil, err
		}
	}
}
