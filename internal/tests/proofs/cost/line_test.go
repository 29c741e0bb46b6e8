package cost

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/zktest"
)

// taker is one contender: it takes the lock, and returns how to give it back.
type taker func(context.Context) (giveBack func() error, err error)

// heartbeats are the requests that a session sends without locks, or once for all of its locks.
var heartbeats = []zktest.Op{zktest.OpPing, zktest.OpSync, zktest.OpMulti}

var listings = []zktest.Op{zktest.OpGetChildren, zktest.OpGetChildren2}

// share is the cost of each of several contenders, from before it came until it had left. Heartbeats
// are not counted.
type share struct {
	requests float64
	writes   float64 // of the requests
	listings float64 // of the requests
	bytes    float64 // both ways, without the listings'
	listed   float64 // bytes of listings
}

// cost is the cost of a line.
type cost struct {
	share
	takers, sessions int

	watches float64 // on the server, for each waiter
	alone   float64 // round trips to take the lock and to give it back, without waiters
	handed  int     // how many takers it was handed over to
	drained float64 // round trips from the first release until the last is in
}

// handover returns the round trips of one hand-over.
func (c cost) handover() float64 { return c.drained / float64(max(c.handed, 1)) }

// line has the takers come one after another. The first ones hold the lock, as many as may, until
// all others wait. Then the holders release it, all at once, and each of the others releases it as
// soon as it holds it.
func (w *world) line(takers []taker, holders, sessions int) cost {
	w.t.Helper()
	w.warmUp(takers[0])
	w.meter.reset()
	c := cost{takers: len(takers), sessions: sessions}
	if len(takers) == 1 {
		c.alone = w.warmUp(takers[0])
		c.share = shareOf(w.meter.read(), 1)
		return c
	}
	c.handed = max(len(takers)-holders, 0)
	var g errgroup.Group
	open := make(chan struct{})
	in := make([]time.Time, len(takers))
	before := 0
	for i, take := range takers {
		if i == holders {
			before = w.watches()
		}
		g.Go(func() error {
			giveBack, err := take(w.t.Context())
			if err != nil {
				return err
			}
			in[i] = time.Now()
			if i < holders {
				<-open
			}
			return giveBack()
		})
		time.Sleep(pause) // so that it stands in line
	}
	if c.handed > 0 {
		c.watches = float64(w.watches()-before) / float64(c.handed)
	}
	began := time.Now()
	close(open)
	if err := g.Wait(); err != nil {
		w.t.Fatal(err)
	}
	if c.handed > 0 {
		c.drained = trips(slices.MaxFunc(in, time.Time.Compare).Sub(began))
	}
	time.Sleep(pause)
	c.share = shareOf(w.meter.read(), len(takers))
	return c
}

// warmUp takes the lock and gives it back, so that its directory is there. It returns the
// round trips that the two took.
func (w *world) warmUp(take taker) float64 {
	w.t.Helper()
	began := time.Now()
	giveBack, err := take(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	took := time.Since(began)
	time.Sleep(pause)
	began = time.Now()
	if err := giveBack(); err != nil {
		w.t.Fatal(err)
	}
	took += time.Since(began)
	time.Sleep(pause)
	return trips(took)
}

// shareOf divides the counts among n.
func shareOf(t traffic, n int) share {
	each := func(count int) float64 { return float64(count) / float64(n) }
	locks, listed := t.except(heartbeats...), t.of(listings...)
	return share{
		requests: each(locks.requests),
		writes:   each(t.of(zktest.OpCreate, zktest.OpCreate2, zktest.OpDelete).requests),
		listings: each(listed.requests),
		bytes:    each(locks.bytes() - listed.bytes()),
		listed:   each(listed.bytes()),
	}
}
