package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/hold"
	"github.com/turnstile-go/turnstile/internal/place"
	"github.com/turnstile-go/turnstile/internal/rounds"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// The directories of InterProcessSemaphoreV2, below its path.
const (
	curatorLocks  = "locks"
	curatorLeases = "leases"
)

// gate is the mutex of InterProcessSemaphoreV2, which is an InterProcessMutex.
var gate = &kinds.Kind{
	Name:     "gate",
	Prefixes: []string{kinds.PrefixLock, kinds.PrefixKazooLock},
	Policy:   queue.Mutex().Policy,
}

// throughGate takes a lease as InterProcessSemaphoreV2 does. It creates its node while it holds the
// gate, and holds the gate until no more than maxLeases nodes are in the directory. Only the holder of
// the gate creates nodes, so its node is the last and all others are ahead of it.
//
// A try finds the semaphore busy if a contender is at the gate, which takes a lease or waits for one, or if there are as many
// leases as it allows.
//
// The limit holds also without the gate: of the holders, the last one to create its node saw all others
// ahead of it. But two contenders that wait with a node would wait for each other in Curator's way of
// counting. So the node goes when the gate is lost.
func (s *Semaphore) throughGate(ctx context.Context, r place.Request, try bool) (*place.Lease, error) {
	var again rounds.Pace
	for {
		// A try looks at the gate and at the leases before it enters.
		how := place.Entry{Try: try, Also: []place.Ask{{Queue: s.lease.Queue, Request: r}}}
		in := place.Request{Kind: gate, Name: r.Name}
		g, err := s.gate.Acquisition(ctx, &in, &how).Finish()
		if err != nil {
			return nil, err
		}
		lease, lost, err := s.passGate(ctx, g, r, try)
		switch {
		case err == nil:
			return lease, nil
		case lost && ctx.Err() == nil:
			// It ended with the gate, and not because of the caller.
			if err := again.Wait(ctx, nil); err != nil {
				return nil, place.Failed("acquire", s.path, err)
			}
		case lost && errors.Is(err, context.Canceled):
			return nil, place.Failed("acquire", s.path, ctx.Err()) // ctx has ended since then
		default:
			return nil, err
		}
	}
}

// passGate takes a lease at the gate, and then leaves the gate. It reports whether the gate was lost
// before there was a lease.
func (s *Semaphore) passGate(
	ctx context.Context, g *place.Lease, r place.Request, try bool,
) (lease *place.Lease, lost bool, err error) {
	inside, cancel := g.Context(ctx)
	defer cancel()
	lease, err = s.lease.Queue.Acquisition(inside, &r, &place.Entry{Try: try, Looked: true}).Finish()
	lost = err != nil && g.Err() != nil
	shut := g.StartRelease(ctx, place.Done)
	var rivals error
	if err == nil {
		rivals = s.ownLayout(ctx)
	}
	if shutErr := hold.Join(leftGate(shut.Wait()), rivals); err == nil && shutErr != nil {
		giveUp(lease)
		lease, err = nil, place.Failed("acquire", s.path, shutErr)
	}
	return lease, lost, err
}

// giveUp releases a lease, if there is one, and does not wait for the server.
func giveUp(l *place.Lease) {
	if l != nil {
		_ = l.Unlock(place.Unwanted, false)
	}
}

// ownLayout fails if there is a contender at the path itself, as in the layout of this package. It is
// called when the lease's node is there. Of two contenders in different layouts, at least the one that
// creates its node later sees the other.
func (s *Semaphore) ownLayout(ctx context.Context) error {
	all, err := s.top.Contenders(ctx, s.lease.Request.Kind)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil // somebody has deleted the whole tree
	case err == nil && len(all) > 0:
		return fmt.Errorf("%w: other contenders do not use Curator's layout", queue.ErrConflict)
	}
	return err
}

// curatorDirs returns the directory of the leases in Curator's layout, if names are those of a
// directory in that layout: it has both.
func curatorDirs(names []string) []string {
	if slices.Contains(names, curatorLocks) && slices.Contains(names, curatorLeases) {
		return []string{curatorLeases}
	}
	return nil
}

// leftGate returns nil for the errors after which the gate is left or will be. Leaving the gate waits
// for the server, as long as ctx lasts, so that the next try does not find the gate held.
func leftGate(err error) error {
	for _, done := range []error{queue.ErrReleasePending, session.ErrLost, session.ErrClosed} {
		if errors.Is(err, done) {
			return nil
		}
	}
	return err
}
