package election_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/session"
)

// deployment is a replica of one of two colours. All replicas are candidates of one election, and those campaign whose
// colour is in the switch, a node that the operator sets.
type deployment struct {
	*election.Election
	colour string
	live   string // the path of the switch
}

var errSwitched = errors.New("the other colour is live")

// lead calls work while this colour is live and this replica leads. It returns when ctx ends, and as Run of an Election
// does. It fails if there is no switch.
func (d *deployment) lead(ctx context.Context, work func(context.Context) error) error {
	for {
		if err := d.await(ctx, true); err != nil {
			return err
		}
		campaign, end := context.WithCancelCause(ctx)
		var follower sync.WaitGroup
		follower.Go(func() { end(cmp.Or(d.await(campaign, false), errSwitched)) })
		end(d.Run(campaign, func(ctx context.Context) error { return d.ifLive(ctx, work) }))
		follower.Wait()
		if err := context.Cause(campaign); !errors.Is(err, errSwitched) {
			return err
		}
	}
}

// await waits until this colour is live, or until it is not.
func (d *deployment) await(ctx context.Context, live bool) error {
	for {
		s, err := d.Manager().Session(ctx)
		if err != nil {
			return err
		}
		colour, _, changed, err := s.Watch(ctx, d.live)
		switch {
		case errors.Is(err, session.ErrLost):
			continue // the next session tells
		case err != nil:
			return err
		case (string(colour) == d.colour) == live:
			return nil
		}
		select {
		case <-changed.Done(): // or the connection is lost: look again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ifLive calls work if this colour is live. A candidate whose turn comes may not have heard of the switch that made a
// leader resign. Behind a sync it reads what that leader knew.
func (d *deployment) ifLive(ctx context.Context, work func(context.Context) error) error {
	s, err := d.Manager().Session(ctx)
	if err != nil {
		return err
	}
	if err := s.Sync(ctx, d.live); err != nil {
		return err
	}
	colour, _, err := s.Get(ctx, d.live)
	if err != nil || string(colour) != d.colour {
		return err
	}
	return work(ctx)
}

// Blue leads, and the operator switches to green.
func Example_blueGreen() {
	m, closeAll := examples()
	defer closeAll()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := m.Session(ctx)
	if err != nil {
		log.Fatal(err)
	}
	const live = "/billing-live"
	if _, err := s.Create(ctx, live, []byte("blue"), session.Persistent); err != nil {
		log.Fatal(err)
	}
	var replicas sync.WaitGroup
	for _, colour := range []string{"blue", "green"} {
		d := &deployment{newCandidate(m), colour, live} // in practice, a process
		replicas.Go(func() {
			_ = d.lead(ctx, func(ctx context.Context) error {
				fmt.Println(colour, "leads")
				if colour == "green" {
					stop() // the example is over
				} else if _, err := s.Set(ctx, live, []byte("green"), -1); err != nil { // by the operator
					return err
				}
				<-ctx.Done()
				return nil
			})
		})
	}
	replicas.Wait()
	// Output:
	// blue leads
	// green leads
}
