package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// The directories of InterProcessSemaphoreV2, below its path.
const (
	curatorLocks  = "locks"
	curatorLeases = "leases"
)

// gate is the mutex of InterProcessSemaphoreV2: that of Curator's InterProcessMutex.
var gate = &queue.Kind{
	Name:     "gate",
	Prefixes: []string{queue.PrefixLock, queue.PrefixKazooLock},
	Policy:   func(queue.Node) queue.Policy { return queue.Policy{} },
}

// get is Acquire or TryAcquire of a queue.
type get func(context.Context, queue.Request) (*queue.Lease, error)

// throughGate takes a lease as InterProcessSemaphoreV2 does: makes its node while it holds
// the gate, and waits there until no more than maxLeases are in the directory. Only the one
// at the gate makes nodes, so his is the last, and all of them are ahead of him.
//
// The count is safe without the gate too: of those who hold, the last to make his node saw
// all others ahead of him. But two who wait with a node wait for each other in Curator's
// way of counting; so the node goes when the gate is lost.
func (s *Semaphore) throughGate(ctx context.Context, enter, take get, r queue.Request) (*queue.Lease, error) {
	var again rounds.Pace
	for {
		g, err := enter(ctx, queue.Request{Kind: gate, Data: r.Data})
		if err != nil {
			return nil, err
		}
		lease, lost, err := s.passGate(ctx, g, take, r)
		switch {
		case err == nil:
			return lease, nil
		case lost && ctx.Err() == nil:
			// It ended with the gate, and not for the caller's sake.
			if err := again.Wait(ctx, nil); err != nil {
				return nil, fmt.Errorf("acquire %s: %w", g.Path(), err)
			}
		case lost && errors.Is(err, context.Canceled):
			return nil, fmt.Errorf("acquire %s: %w", g.Path(), ctx.Err()) // its time ran out since then
		default:
			return nil, err
		}
	}
}

// passGate takes a lease at the gate, and leaves that. It reports whether the gate was lost
// before there was a lease. A hook that panics, or ends the goroutine, leaves neither behind.
func (s *Semaphore) passGate(ctx context.Context, g *queue.Lease, take get, r queue.Request) (lease *queue.Lease, lost bool, err error) {
	returns := false
	defer func() {
		if !returns {
			defer giveUp(lease) // also if a hook panics once more
			giveUp(g)
		}
	}()
	inside, cancel := g.Context(ctx)
	defer cancel()
	lease, err = take(inside, r)
	lost = err != nil && g.Err() != nil
	shut := g.StartRelease(ctx)
	var rivals error
	if err == nil {
		rivals = s.ownLayout(ctx)
	}
	if shutErr := errors.Join(leftGate(shut()), rivals); err == nil && shutErr != nil {
		giveUp(lease) // what went wrong is told already
		lease, err = nil, shutErr
	}
	returns = true
	return lease, lost, err
}

// giveUp releases a lease, if there is one, and does not wait for the server's word.
func giveUp(l *queue.Lease) {
	if l == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.Release(ended)
}

// ownLayout fails if anybody stands in line at the path itself, as in the layout of this
// package. It is asked when the lease's node is there: of one in either layout, at least the
// later to make its node sees the other.
func (s *Semaphore) ownLayout(ctx context.Context) error {
	all, err := s.top.Contenders(ctx, s.kind)
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%w: at %s others use the layout that is not Curator's", queue.ErrConflict, s.path)
	}
	return err
}

// curatorDirs returns where the leases in Curator's layout are, if the names in a directory are
// those of one that is used in that layout: it has both.
func curatorDirs(names []string) []string {
	if slices.Contains(names, curatorLocks) && slices.Contains(names, curatorLeases) {
		return []string{curatorLeases}
	}
	return nil
}

// leftGate returns what is an error of leaving the gate. That waits for the server's word, so
// that a try that comes after finds nobody at the gate, but not for longer than ctx lasts.
func leftGate(err error) error {
	for _, done := range []error{queue.ErrReleasePending, session.ErrLost, session.ErrClosed} {
		if errors.Is(err, done) {
			return nil
		}
	}
	return err
}
