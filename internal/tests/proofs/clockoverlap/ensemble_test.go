//go:build linux

package clockoverlap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

const (
	tick = 2 * time.Second // ZooKeeper's default

	// A session should expire so long after its timeout, by the leader's clock. See the package's
	// documentation.
	leastRest = 20 * time.Millisecond
	mostRest  = 350 * time.Millisecond
)

// ensemble is three servers with a view on the link between the leader and one follower.
type ensemble struct {
	*zktest.Ensemble
	leader, follower, third int
	clock                   serverClock // the leader's

	mu   sync.Mutex // guards what follows, and the roles while pings are watched
	last time.Time  // when an answer to a ping was passed on
	news chan struct{}
	trap *trap // nil: none
}

// trap cuts the follower off from the others in place of passing an answer on.
type trap struct {
	skip   int  // how many answers pass before
	oneWay bool // what the leader sends goes on arriving at the follower
	sprung chan struct{}
}

// startEnsemble starts servers whose clocks run at the given rate, under libfaketime if environ is not empty.
func startEnsemble(t *testing.T, rate float64, environ map[string]string) *ensemble {
	opts := []zktest.RealOption{zktest.Nodes(3), zktest.TickTime(tick), zktest.Partitions()}
	e := &ensemble{
		Ensemble: startFaked(t, environ, opts...),
		clock:    serverClock{rate: rate},
		news:     make(chan struct{}),
	}
	stop, err := e.OnPing(e.onPing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return e
}

func (e *ensemble) onPing(p zktest.PeerPing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !p.Answer || p.Leader != e.leader || p.Server != e.follower {
		return
	}
	if e.trap != nil {
		if e.trap.skip == 0 {
			e.springLocked()
			return
		}
		e.trap.skip--
	}
	e.last = time.Now()
	close(e.news)
	e.news = make(chan struct{})
}

// springLocked cuts the follower off. Cutting a link to another server cannot fail.
func (e *ensemble) springLocked() {
	_ = e.PartitionOneWay(e.follower, e.leader)
	_ = e.Partition(e.follower, e.third)
	if !e.trap.oneWay {
		_ = e.Partition(e.follower, e.leader)
	}
	close(e.trap.sprung)
	e.trap = nil
}

// setTrap has the follower cut off at the answer after the next skip ones.
func (e *ensemble) setTrap(skip int, oneWay bool) *trap {
	tr := &trap{skip: skip, oneWay: oneWay, sprung: make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.trap = tr
	return tr
}

// restore undoes what a try has done to the servers and waits until all of them serve.
func (e *ensemble) restore(ctx context.Context) error {
	e.mu.Lock()
	e.trap = nil
	leader := e.leader
	e.mu.Unlock()
	e.HealPartitions()
	return errors.Join(e.Resume(leader), e.WaitReady(ctx))
}

// assign finds out who leads, and draws a follower.
func (e *ensemble) assign(ctx context.Context) error {
	if err := e.WaitReady(ctx); err != nil {
		return err
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := 1 + rand.IntN(2)
	e.leader, e.follower, e.third = leader, (leader+one)%3, (leader+3-one)%3
	return nil
}

// answer waits for the follower's next answer to be passed on.
func (e *ensemble) answer(ctx context.Context) (time.Time, error) {
	e.mu.Lock()
	news := e.news
	e.mu.Unlock()
	select {
	case <-news:
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("no answer to a ping: %w", ctx.Err())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last, nil
}

// period is the time between two pings of the leader. It waits for half a tick and then does some
// work.
func (e *ensemble) period() time.Duration { return e.clock.real(tick/2) + time.Millisecond/2 }

// rest returns how much longer than its timeout, by the leader's clock, a session lives if the leader hears
// of it at the given time. The timeout must be a multiple of the tick.
func (e *ensemble) rest(at time.Time) time.Duration { return tick - e.clock.nanoTime(at)%tick }

// align stops the leader, if necessary, to move its pings. Then a session that it hears of in every
// second ping expires soon after its timeout. Now and then it moves the pings without need.
func (e *ensemble) align(ctx context.Context) error {
	for again := rand.IntN(3) == 0; ; again = false {
		at, err := e.answer(ctx)
		if err != nil {
			return err
		}
		now := e.rest(at) % (tick / 2)
		if leastRest <= now && now <= mostRest && !again {
			return nil
		}
		want := leastRest + rand.N(mostRest-leastRest)
		due := at.Add(e.period())
		move := e.clock.real((now - want + tick/2) % (tick / 2))
		if err := e.pause(ctx, due.Add(-50*time.Millisecond), due.Add(move)); err != nil {
			return err
		}
	}
}

// pause stops the leader from one time to another.
func (e *ensemble) pause(ctx context.Context, from, to time.Time) error {
	if err := until(ctx, from); err != nil {
		return err
	}
	if err := e.Pause(e.leader); err != nil {
		return err
	}
	return errors.Join(until(ctx, to), e.Resume(e.leader))
}

// moment waits for an answer to a ping such that sessions on its list expire soon after
// their timeout. The same is true of every second answer after it.
func (e *ensemble) moment(ctx context.Context) (time.Time, error) {
	for {
		at, err := e.answer(ctx)
		if err != nil || e.rest(at) < tick/2 {
			return at, err
		}
	}
}

// until waits for a time of the schedule.
func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
