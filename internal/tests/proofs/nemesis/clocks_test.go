//go:build linux

package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/peerlink"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// These schedules look for a lease that outlives its session.
//
// A leader learns that the client of a follower is alive only from the follower's answers
// to its pings, twice a tick. A client that counts its session from anything later believes
// in it for longer than the leader does. That shows only if the follower is cut off at the
// right moment, so the schedules look for that moment: they watch the link between leader and
// follower, and cut it in front of the answer that would have helped. Then the leader knows
// only what the answers before it said.
//
// # One cut
//
// Several holders are connected to the follower, with timeouts of 4, 6 and 10 s. Some are told the tick and some are
// not. Some leave everything to their session's heartbeats, some write something at the last moment, and some read and
// write all the time. Each has a rival, connected to the leader, that waits for the same lock. Every holder is one try.
//
// When a rival's Acquire returns, its holder is asked. A lease can be lost before the cut, because the machine was
// busy, or because the leader stood still for longer than the session can be certain. That is not a try: it is counted
// as lost early.
//
// # The moment
//
// A leader expires sessions at multiples of a tick, by the clock of System.nanoTime, and
// pings every half tick from when it was elected. So a session lives up to a tick longer than
// its timeout, depending on how the two fall together, and with most elections two holders are
// impossible. Before a try, the schedule stops the leader's process for less than half a tick if
// necessary, so that sessions of holders expire 20 to 350 ms after their timeout.
//
// # Wrong clocks
//
// In other schedules clocks run at different rates, or wall clocks are stepped. Servers get their clocks from
// libfaketime, and clients from package fakeclocks. Only the ratio of two rates matters, so it is always the servers
// whose rate is changed. A rate at which the lease clock must fail shows that the others would notice.
var clockSchedules = []schedule{
	{group: "clocks", name: "cut before an answer", short: true, beside: true, run: func(t *trial) {
		cut{run: cutBeforeAnswer, oneWay: 0.5}.repeat(t, 45*time.Second)
	}},
	{group: "clocks", name: "the leader stood still", beside: true, run: func(t *trial) {
		cut{run: leaderStoodStill, oneWay: 0.75}.repeat(t, 45*time.Second)
	}},
	{group: "wrong-clocks", name: "servers 0.8 times as fast", beside: true, run: atRate(0.8)},
	{group: "wrong-clocks", name: "servers 0.98 times as fast", beside: true, run: atRate(0.98)},
	{group: "wrong-clocks", name: "servers 1.02 times as fast", beside: true, run: atRate(holdsUpTo)},
	{group: "wrong-clocks", name: "servers 1.05 times as fast", beside: true, run: atRate(1.05)},
	{group: "wrong-clocks", name: "servers 1.2 times as fast", beside: true, run: atRate(breaksFrom)},
	{group: "wrong-clocks", name: "wall clocks of the servers stepped", beside: true, run: serversStepped},
	{group: "wrong-clocks", name: clientsSteppedName, beside: true, run: clientsStepped},
}

const clientsSteppedName = "wall clocks of the clients stepped"

const (
	// A session should expire so long after its timeout, by the leader's clock.
	leastRest = 20 * time.Millisecond
	mostRest  = 350 * time.Millisecond

	// tryWithin bounds one try, on a busy machine.
	tryWithin = 2 * time.Minute
	// Tries that fail one after another, for other reasons than two holders, end a schedule.
	mostFailures = 3
	// mostForTwo is how many tries have to show two holders at a rate at which the lease clock must fail.
	mostForTwo = 5
	// mostOffset is how long before the cut the last-moment requests are sent, at most.
	mostOffset = 200 * time.Millisecond
	// mostLinger is how long the leader's last frames arrive after the follower's, at most.
	mostLinger = 50 * time.Millisecond

	// The margin is enough up to the one rate of the servers' clocks. It cannot be enough from the other on.
	holdsUpTo  = 1.02
	breaksFrom = 1.2

	// wallStep is how far wall clocks are stepped.
	wallStep = time.Hour
)

// cut is what happens in a try before a follower is cut off.
type cut struct {
	seconds []int   // the timeouts of the holders, multiples of the tick; nil: 4, 6, 10
	oneWay  float64 // how often what the leader sends still arrives for a moment
	rate    float64 // of the servers' clocks; 0: 1
	environ map[string]string
	mayFail bool // two holders are possible
	// run sets a trap and carries out the schedule. It may return before or after the trap
	// springs. Its goroutines in the group end with ctx.
	run func(ctx context.Context, l *clockLab, bg *sync.WaitGroup, oneWay bool) (*trap, error)
}

// style is what a holder sends besides its session's heartbeats.
type style string

const (
	idle   style = "idle"
	writes style = "one write"
	busy   style = "busy"
)

// clockLab is three servers with a view on the link between the leader and one follower.
type clockLab struct {
	*lab
	*peerlink.Links
	cut
	leader, follower, third int
	clock                   serverClock // the leader's
	serial                  atomic.Int64
	contest                 []*couple
	rivals                  *session.Manager

	news  chan time.Time // when the last answer to a ping was passed on
	watch sync.Mutex     // guards the trap, and the roles while pings are watched
	trap  *trap          // nil: none
}

// trap cuts the follower off from the others in place of passing an answer on.
type trap struct {
	skip   int  // how many answers pass before
	oneWay bool // what the leader sends goes on arriving at the follower
	sprung chan struct{}
}

func (l *clockLab) onPing(p peerlink.Ping) {
	l.watch.Lock()
	defer l.watch.Unlock()
	if !p.Answer || p.Leader != l.leader || p.Server != l.follower {
		return
	}
	if l.trap != nil {
		if l.trap.skip == 0 {
			l.springLocked()
			return
		}
		l.trap.skip--
	}
	select {
	case <-l.news:
	default:
	}
	l.news <- time.Now()
}

// springLocked cuts the follower off.
func (l *clockLab) springLocked() {
	l.CutOneWay(l.follower, l.leader)
	l.Cut(l.follower, l.third)
	if !l.trap.oneWay {
		l.Cut(l.follower, l.leader)
	}
	close(l.trap.sprung)
	l.trap = nil
}

// setTrap has the follower cut off at the answer after the next skip ones.
func (l *clockLab) setTrap(skip int, oneWay bool) *trap {
	tr := &trap{skip: skip, oneWay: oneWay, sprung: make(chan struct{})}
	l.watch.Lock()
	defer l.watch.Unlock()
	l.trap = tr
	return tr
}

// restore undoes what a try has done to the servers and waits until all of them serve.
func (l *clockLab) restore(ctx context.Context) error {
	l.watch.Lock()
	l.trap = nil
	leader := l.leader
	l.watch.Unlock()
	l.Heal()
	return errors.Join(l.Resume(leader), l.WaitReady(ctx))
}

// assign finds out who leads, and draws a follower.
func (l *clockLab) assign(ctx context.Context) error {
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	leader, err := l.Leader(ctx)
	l.watch.Lock()
	defer l.watch.Unlock()
	one := 1 + rand.IntN(2)
	l.leader, l.follower, l.third = leader, (leader+one)%3, (leader+3-one)%3
	return err
}

// answer waits for the follower's next answer to be passed on.
func (l *clockLab) answer(ctx context.Context) (time.Time, error) {
	select {
	case <-l.news: // of before
	default:
	}
	select {
	case at := <-l.news:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("no answer to a ping: %w", ctx.Err())
	}
}

// period is the time between two pings of the leader. It waits for half a tick and then does some
// work.
func (l *clockLab) period() time.Duration { return l.clock.real(labTick/2) + time.Millisecond/2 }

// beyond returns how much longer than its timeout, by the leader's clock, a session lives if the leader hears
// of it at the given time. The timeout must be a multiple of the tick.
func (l *clockLab) beyond(at time.Time) time.Duration { return labTick - l.clock.nanoTime(at)%labTick }

// align stops the leader, if necessary, to move its pings. Then a session that it hears of in every
// second ping expires soon after its timeout. Now and then it moves the pings without need.
func (l *clockLab) align(ctx context.Context) error {
	for again := rand.IntN(3) == 0; ; again = false {
		at, err := l.answer(ctx)
		if err != nil {
			return err
		}
		now := l.beyond(at) % (labTick / 2)
		if leastRest <= now && now <= mostRest && !again {
			return nil
		}
		want := leastRest + rand.N(mostRest-leastRest)
		due := at.Add(l.period())
		move := l.clock.real((now - want + labTick/2) % (labTick / 2))
		if err := l.stopLeader(ctx, due.Add(-50*time.Millisecond), due.Add(move)); err != nil {
			return err
		}
	}
}

// stopLeader stops the leader from one time to another.
func (l *clockLab) stopLeader(ctx context.Context, from, to time.Time) error {
	if err := until(ctx, from); err != nil {
		return err
	}
	if err := l.Pause(l.leader); err != nil {
		return err
	}
	return errors.Join(until(ctx, to), l.Resume(l.leader))
}

// moment waits for an answer to a ping such that sessions on its list expire soon after
// their timeout. The same is true of every second answer after it.
func (l *clockLab) moment(ctx context.Context) (time.Time, error) {
	for {
		at, err := l.answer(ctx)
		if err != nil || l.beyond(at) < labTick/2 {
			return at, err
		}
	}
}

// until waits for a time of the schedule.
func until(ctx context.Context, at time.Time) error {
	if !pause(ctx, time.Until(at)) {
		return ctx.Err()
	}
	return nil
}

// repeat repeats tries for so long in full, and does one in the short form.
func (c cut) repeat(t *trial, full time.Duration) {
	t.Helper()
	if c.seconds == nil {
		c.seconds = []int{4, 6, 10}
	}
	if c.rate == 0 {
		c.rate = 1
	}
	links, linked := peerlink.New(t)
	l := &clockLab{lab: labOf(t, startFaked(t, c.environ, zktest.Servers(voters), zktest.TickTime(labTick), linked)), Links: links,
		cut: c, clock: serverClock{rate: c.rate}, news: make(chan time.Time, 1)}
	t.Cleanup(l.OnPing(l.onPing))
	tries, early, two, failures, by := 0, 0, 0, 0, time.Duration(0)
	for end := time.Now().Add(t.length(0, full)); ; {
		err := l.try()
		for _, c := range l.contest {
			if c.rival == nil || c.rival.err != nil || c.rival.held == nil {
				continue
			}
			if c.early && c.rival.by == 0 {
				early++
				continue
			}
			tries++
			if c.rival.by > 0 {
				two++
				by = max(by, c.rival.by)
			}
		}
		failures++
		if err == nil {
			failures = 0
		} else if t.Logf("a try failed: %v", err); failures > mostFailures {
			t.Fatalf("%d tries failed one after another", failures)
		}
		// On a busy machine more sessions are lost before the cut, and fewer tries show two holders.
		again := c.rate >= breaksFrom && two == 0 && l.faults < mostForTwo
		if time.Now().After(end) && failures == 0 && !again {
			break
		}
	}
	l.figure("%d tries, %d times two holders, for up to %v, %d lost early", tries, two, ms(by), early)
	if tries == 0 {
		t.Error("no holder was cut off: nothing is proven")
	}
	if n := l.judge("a mutex", c.mayFail); c.rate >= breaksFrom && n == 0 {
		t.Error("no two holders: these tries would not show them")
	}
}

// try runs the schedule once.
func (l *clockLab) try() error {
	ctx, cancel := context.WithTimeout(l.ctx, tryWithin)
	defer cancel()
	l.contest, l.faults = nil, l.faults+1
	if err := l.assign(ctx); err != nil {
		return err
	}
	defer l.closeClients()
	err := l.enterAll(ctx)
	if err == nil {
		err = l.upToCut(ctx)
	}
	if err != nil {
		cancel()
	}
	for _, c := range l.contest {
		if c.rival != nil {
			<-c.rival.done
			err = errors.Join(err, c.rival.err)
		}
	}
	again, stop := context.WithTimeout(l.ctx, tryWithin)
	defer stop()
	return errors.Join(err, l.restore(again))
}

// enterAll has holders of all kinds and styles take locks, and then their rivals wait.
func (l *clockLab) enterAll(ctx context.Context) (err error) {
	if l.rivals, err = l.connect(ctx, l.Addr(l.leader), 30*time.Second); err != nil {
		return err
	}
	var starts errgroup.Group
	for _, told := range []bool{false, true} {
		for _, s := range l.seconds {
			for _, st := range []style{idle, writes, writes, busy} {
				c := &couple{timeout: time.Duration(s) * time.Second, style: st}
				l.contest = append(l.contest, c)
				// zk.Conn pings every third of a timeout from when it has connected.
				start := time.Now().Add(rand.N(c.timeout / 3))
				starts.Go(func() error {
					if err := until(ctx, start); err != nil {
						return err
					}
					if err := l.enter(ctx, c, told); err != nil {
						return fmt.Errorf("a holder of %v, %s: %w", c.timeout, st, err)
					}
					return nil
				})
			}
		}
	}
	return starts.Wait()
}

// upToCut runs the schedule up to the cut.
func (l *clockLab) upToCut(ctx context.Context) error {
	if err := l.clock.read(ctx, l); err != nil {
		return err
	}
	if err := l.align(ctx); err != nil {
		return err
	}
	var bg sync.WaitGroup
	defer bg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	oneWay := rand.Float64() < l.oneWay
	tr, err := l.run(ctx, l, &bg, oneWay)
	if err != nil {
		return err
	}
	select {
	case <-tr.sprung:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, c := range l.contest {
		c.early = c.held.Err() != nil
	}
	if err := until(ctx, time.Now().Add(rand.N(mostLinger))); err != nil || !oneWay {
		return err
	}
	l.Cut(l.leader, l.follower)
	return nil
}

// use has the contestants use their sessions in the background, until ctx ends. Some write something shortly before the
// given time.
func (l *clockLab) use(ctx context.Context, bg *sync.WaitGroup, last time.Time) {
	for _, c := range l.contest {
		switch c.style {
		case busy:
			bg.Go(func() { c.work(ctx) })
		case writes:
			bg.Go(func() {
				if until(ctx, last.Add(-time.Millisecond-rand.N(mostOffset))) == nil {
					c.write(ctx)
				}
			})
		}
	}
}

// The follower is cut off just before it answers a ping, and writes have just been answered.
func cutBeforeAnswer(ctx context.Context, l *clockLab, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
	at, err := l.moment(ctx)
	if err != nil {
		return nil, err
	}
	const skip = 2
	tr := l.setTrap(skip, oneWay)
	l.use(ctx, bg, at.Add((skip+1)*l.period()))
	return tr, nil
}

// The leader stands still for 1 to 3 s. When it goes on, the follower is cut off just before
// it answers the first ping. The other two servers agree to writes meanwhile, and the follower
// may still hear of them.
func leaderStoodStill(ctx context.Context, l *clockLab, bg *sync.WaitGroup, oneWay bool) (*trap, error) {
	at, err := l.moment(ctx)
	if err != nil {
		return nil, err
	}
	const skip = 2
	tr := l.setTrap(skip, oneWay)
	period := l.period()
	from := at.Add(skip*period + period/20 + rand.N(period*17/20))
	// More often short than long: a session of 4 s cannot be certain for longer.
	u := rand.Float64()
	to := from.Add(time.Second + time.Duration(u*u*float64(2*time.Second)))
	l.use(ctx, bg, to)
	return tr, l.stopLeader(ctx, from, to)
}
