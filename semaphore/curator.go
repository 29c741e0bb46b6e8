package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/share"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Below the path of InterProcessSemaphoreV2.
const (
	curatorLocks  = "locks"
	curatorLeases = "leases"
)

var gateKind = &queue.Kind{
	Name:     "gate",
	Prefixes: []string{queue.PrefixLock, queue.PrefixKazooLock},
	Policy:   queue.Mutex().Policy,
}

// curator is a semaphore in Curator's layout. A contender creates its node among the leases while it holds the gate,
// and holds the gate until no more than the limit of nodes are there. So its node is the last, and all others are
// ahead of it.
//
// The limit also holds without the gate, since the last holder to create its node saw all others ahead of it. But two
// contenders that wait with a node would wait for each other in Curator's way of counting. So the node goes when the
// gate is lost.
type curator struct {
	top          *queue.Queue
	gate, leases share.Entry
}

func newCurator(top *queue.Queue, limit int, name string) (*curator, error) {
	gate, gateErr := queue.New(top.Manager(), top.Path()+"/"+curatorLocks)
	leases, leasesErr := queue.New(top.Manager(), top.Path()+"/"+curatorLeases)
	if err := share.Join(gateErr, leasesErr); err != nil {
		return nil, err
	}
	one := func(queue.Node) queue.Policy { return queue.Policy{Slack: limit - 1} } // a node is a lease, whatever its name says
	kind := &queue.Kind{Name: "semaphore", Prefixes: []string{queue.PrefixLease}, Policy: one}
	return &curator{
		top:    top,
		gate:   share.Entry{Queue: gate, Kind: gateKind, Name: name},
		leases: share.Entry{Queue: leases, Kind: kind, Name: name},
	}, nil
}

// acquire begins again if the gate or the lease is lost on the way. A try is busy if a contender is at the gate, or
// if all leases are taken: it looks at both in one flight.
func (c *curator) acquire(ctx context.Context, try bool) (lease *queue.Lease, err error) {
	err = again(ctx, c.top.Manager(), func(ctx context.Context) error {
		gate, err := enter(ctx, c.gate, try, c.gate, c.leases)
		if err == nil {
			lease, err = c.passGate(ctx, gate, try)
		}
		return err
	})
	return lease, err
}

// enter takes a place at the gate or among the leases. A try makes its looks first.
func enter(ctx context.Context, at share.Entry, try bool, looks ...share.Entry) (*queue.Lease, error) {
	r := at.Request()
	ctx, end, err := at.Queue.StartAcquiring(ctx, &r, try)
	if err != nil {
		return nil, err
	}
	how := queue.Waits
	if try {
		how = queue.TriesInside
		if effort, err := share.LookAll(ctx, looks...); err != nil {
			return end(nil, effort, err)
		}
	}
	t, effort, err := at.Queue.Begin(ctx, &r, how)
	if err != nil {
		return end(nil, effort, err)
	}
	return end(t.Lease(ctx, nil), effort, nil)
}

// passGate takes a lease, and leaves the gate. It waits for that as long as ctx lasts, so that the next try does not
// find the gate held.
func (c *curator) passGate(ctx context.Context, gate *queue.Lease, try bool) (*queue.Lease, error) {
	inside, cancel := gate.Context(ctx)
	lease, err := enter(inside, c.leases, try)
	cancel()
	if err != nil && gate.Err() != nil {
		return nil, gate.Err()
	}
	leaving := gate.StartRelease(ctx, true)
	if err != nil {
		_ = leaving.Wait(ctx)
		return nil, err
	}
	rivals, err := c.meetOwnLayout(ctx, lease), leaving.Wait(ctx)
	if errors.Is(err, queue.ErrReleasePending) || errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrClosed) {
		err = nil // it will be left
	}
	if err = share.Join(err, rivals); err == nil {
		return lease, nil
	}
	_ = lease.GiveUp(ctx)
	return nil, &queue.OpError{Op: "acquire", Path: c.top.Path(), Err: err}
}

// meetOwnLayout fails if there is a contender in the layout of this package. Each side looks for the other when its
// own node stands, by the session of that, so at least the one with the later node sees the other.
func (c *curator) meetOwnLayout(ctx context.Context, lease *queue.Lease) error {
	names, _, err := lease.Turn().Session().Children(ctx, c.top.Path())
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, name := range names {
		if _, contends := queue.ParseNode(name); contends {
			return fmt.Errorf("%w: other contenders do not use Curator's layout", queue.ErrConflict)
		}
	}
	return err
}

func (c *curator) contenders(ctx context.Context) ([]queue.Contender, error) {
	all, err := c.leases.Queue.Contenders(ctx, c.leases.Kind)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	queued, gateErr := c.gate.Queue.Contenders(ctx, gateKind)
	if gateErr != nil && (err != nil || !errors.Is(gateErr, zk.ErrNoNode)) {
		return nil, gateErr
	}
	for _, one := range queued {
		if !one.Holder { // its holder has a node among the leases
			all = append(all, one)
		}
	}
	return all, nil
}
