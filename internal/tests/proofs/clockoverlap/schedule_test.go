//go:build linux

package clockoverlap

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	// tryWithin bounds one try, on a busy machine.
	tryWithin = 2 * time.Minute
	// Tries that fail one after another, for other reasons than overlaps, end a test.
	mostFailures = 3
	// mostOffset is how long before the cut the last-moment requests are sent, at most.
	mostOffset = 200 * time.Millisecond
	// mostLinger is how long the leader's last frames arrive after the follower's, at most.
	mostLinger = 50 * time.Millisecond
)

var (
	silent = session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	serial atomic.Int64 // of paths
)

// schedule is what happens in a try before the follower is cut off.
type schedule struct {
	kinds   []kind
	styles  []style
	proxied bool    // holders connect through proxies
	oneWay  float64 // how often what the leader sends still arrives for a moment
	// run sets a trap and carries out the schedule. It may return before or after the trap
	// springs. Its goroutines in the group end with ctx.
	run func(ctx context.Context, e *ensemble, c *contest, bg *sync.WaitGroup, oneWay bool) (*trap, error)
}

// The follower is cut off just before it answers a ping, and writes have just been answered.
func TestCutBeforeAnswer(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	s := schedule{kinds: kinds(4, 6, 10), styles: []style{quiet, writes, writes, busy}, oneWay: 0.5, run: cutBeforeAnswer}
	s.test(t, startEnsemble(t, 1, nil), *clockFlag).mustHold(t)
}

func cutBeforeAnswer(ctx context.Context, e *ensemble, c *contest, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
	at, err := e.moment(ctx)
	if err != nil {
		return nil, err
	}
	const skip = 2
	tr := e.setTrap(skip, oneWay)
	cut := at.Add((skip + 1) * e.period())
	c.startWork(ctx, bg)
	c.writeAt(ctx, bg, cut)
	return tr, nil
}

// An answer to a client is held back for up to three tenths of its session's timeout. Then
// the follower is cut off as in the first schedule. A client that sends no heartbeats while
// it waits for an answer is on no list meanwhile.
func TestHeldAnswer(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	s := schedule{kinds: kinds(4, 6, 10), styles: []style{quiet, quiet, writes, writes}, proxied: true, oneWay: 0.5, run: heldAnswer}
	s.test(t, startEnsemble(t, 1, nil), *clockFlag).mustHold(t)
}

func heldAnswer(ctx context.Context, e *ensemble, c *contest, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
	at, err := e.moment(ctx)
	if err != nil {
		return nil, err
	}
	const skip = 4
	tr := e.setTrap(skip, oneWay)
	cut := at.Add((skip + 1) * e.period())
	for _, h := range c.holders {
		bg.Go(func() { h.beHeldBack(ctx, cut, e.period()) })
	}
	return tr, nil
}

// beHeldBack holds an answer to a heartbeat back that was sent just before some list, and
// lets it go shortly before the cut.
func (h *holder) beHeldBack(ctx context.Context, cut time.Time, period time.Duration) {
	most := h.timeout * 31 / 100
	// As many lists before the cut as fit in, and an odd number: see moment.
	lists := (int(most/period)-1)/2*2 + 1
	if until(ctx, cut.Add(-time.Duration(lists)*period-h.timeout/10)) != nil {
		return
	}
	held := h.proxy.HoldReply(zktest.Any())
	defer held.Release()
	select {
	case <-held.Hit():
	case <-ctx.Done():
		return
	}
	now, last := time.Now(), cut.Add(-offset())
	release := now.Add(most)
	if h.style == quiet {
		// A heartbeat still has to follow.
		release = now.Add(most - rand.N(h.timeout/10))
	}
	if release.After(last) {
		release = last
	}
	if until(ctx, release) != nil {
		return
	}
	held.Release()
	if h.style == writes && until(ctx, last) == nil {
		h.write(ctx)
	}
}

// The leader stands still for 1 to 3 s. When it goes on, the follower is cut off just before
// it answers the first ping. The other two servers agree to writes meanwhile, and the follower
// may still hear of them.
func TestLeaderStoodStill(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	s := schedule{kinds: kinds(4, 6, 10), styles: []style{quiet, writes, writes, busy}, oneWay: 0.75, run: leaderStoodStill}
	s.test(t, startEnsemble(t, 1, nil), *clockFlag).mustHold(t)
}

func leaderStoodStill(ctx context.Context, e *ensemble, c *contest, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
	at, err := e.moment(ctx)
	if err != nil {
		return nil, err
	}
	c.startWork(ctx, bg)
	const skip = 2
	tr := e.setTrap(skip, oneWay)
	period := e.period()
	from := at.Add(skip*period + period/20 + rand.N(period*17/20))
	// More often short than long: a session of 4 s cannot be certain for longer.
	u := rand.Float64()
	to := from.Add(time.Second + time.Duration(u*u*float64(2*time.Second)))
	c.writeAt(ctx, bg, to)
	return tr, e.pause(ctx, from, to)
}

func offset() time.Duration { return time.Millisecond + rand.N(mostOffset) }

func (c *contest) startWork(ctx context.Context, bg *sync.WaitGroup) {
	for _, h := range c.of(busy) {
		bg.Go(func() { h.work(ctx) })
	}
}

// writeAt has each holder write something shortly before the given time.
func (c *contest) writeAt(ctx context.Context, bg *sync.WaitGroup, at time.Time) {
	for _, h := range c.of(writes) {
		bg.Go(func() {
			if until(ctx, at.Add(-offset())) == nil {
				h.write(ctx)
			}
		})
	}
}

// test repeats the schedule for so long, and at least once.
func (s schedule) test(t *testing.T, e *ensemble, long time.Duration) tally {
	results := newTally(s.kinds)
	failures := 0
	for end := time.Now().Add(long); ; {
		holders, err := s.try(e)
		results.add(holders)
		if err == nil {
			failures = 0
			t.Log(describe(s.kinds, holders))
		} else if t.Logf("a try failed: %v", err); failures == mostFailures {
			t.Fatalf("%d tries failed one after another", failures)
		} else {
			failures++
		}
		if time.Now().After(end) && failures == 0 {
			break
		}
	}
	return results
}

// try runs the schedule once and returns the holders whose rivals got their locks.
func (s schedule) try(e *ensemble) (done []*holder, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), tryWithin)
	defer cancel()
	if err := e.assign(ctx); err != nil {
		return nil, err
	}
	c, err := newContest(ctx, e, s)
	defer c.close()
	if err == nil {
		err = s.cut(ctx, e, c)
	}
	if err != nil {
		cancel()
	}
	err = errors.Join(err, c.ends.Wait())
	again, stop := context.WithTimeout(context.Background(), tryWithin)
	defer stop()
	err = errors.Join(err, e.restore(again))
	for _, h := range c.holders {
		if !h.granted.IsZero() {
			done = append(done, h)
		}
	}
	return done, err
}

// cut runs the schedule up to the cut.
func (s schedule) cut(ctx context.Context, e *ensemble, c *contest) error {
	if err := e.clock.read(ctx, c.rivals); err != nil {
		return err
	}
	if err := e.align(ctx); err != nil {
		return err
	}
	var bg sync.WaitGroup
	defer bg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	oneWay := rand.Float64() < s.oneWay
	tr, err := s.run(ctx, e, c, &bg, oneWay)
	if err != nil {
		return err
	}
	select {
	case <-tr.sprung:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, h := range c.holders {
		h.early = h.lease.Err() != nil
	}
	linger := rand.N(mostLinger)
	if err := until(ctx, time.Now().Add(linger)); err != nil || !oneWay {
		return err
	}
	return e.Partition(e.leader, e.follower)
}
