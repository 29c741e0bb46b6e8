package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// TestLeaseSeeds attacks the lease clock where it can be wrong: one holder, one rival, three servers
// with ZooKeeper's own tick, and one attack a seed. The margin is next to none, since no thread is
// late here. When the rival gets the lock, the holder must know that it has lost it.
func TestLeaseSeeds(t *testing.T) {
	n := seedCount()
	granted, late, after := 0, 0, make(map[string]int)
	for i := range n {
		seed := uint64(*firstFlag) + uint64(i)
		a := newAttack(seed)
		synctest.Test(t, func(t *testing.T) { a.run(t) })
		if a.granted {
			granted++
			after[a.name]++
			if a.late > 0 {
				late++
			}
		}
		if a.overlap > 0 {
			t.Errorf("after %d seeds of this process: seed %d fails; again: go test ./internal/tests/proofs/simulation -run TestLeaseSeeds -seeds 1 -first %d -v\n  at %v: two holders for %v: %s",
				i+1, seed, seed, a.at, a.overlap, a)
			if !*keepFlag {
				return
			}
		}
	}
	t.Logf("the rival got the lock in %d, with late answers in %d: %v", granted, late, after)
	longtest.Covered(t, "%d seeds of the lease clock", n)
	if granted < n/2 {
		t.Errorf("the rival got the lock in %d of %d seeds only: these attacks show little", granted, n)
	}
}

// attack is one seed.
type attack struct {
	seed uint64
	rng  *rand.Rand
	name string

	rate     float64         // of the servers' clocks, by the clients'
	timeouts []time.Duration // of sessions; some get up to 2 s more
	opts     []session.Option

	srv            testserver.Switched
	timeout        time.Duration
	late           time.Duration // by which every answer is; 0 in most seeds
	told           bool
	leader, home   int       // servers: the holder is at home, a follower
	way            *endpoint // of the holder
	faults         *faults
	holder, other  *session.Manager
	lease          *queue.Lease
	rivals         chan *queue.Lease
	granted        bool
	at, overlap    time.Duration
	stopTraffic    context.CancelFunc
	trafficStopped chan struct{}
}

// newAttack returns an attack on servers with right clocks and on a lease without a margin to speak of.
func newAttack(seed uint64) *attack {
	return &attack{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 77)), rate: 1,
		timeouts: []time.Duration{4 * time.Second, 5 * time.Second, 10 * time.Second},
		opts:     []session.Option{session.WithMargin(10 * time.Millisecond)},
	}
}

func (a *attack) String() string {
	return fmt.Sprintf("%s, timeout %v, tick told: %v, answers late by %v", a.name, a.timeout, a.told, a.late)
}

var attacks = []struct {
	name string
	do   func(*attack)
}{
	{"cut off", (*attack).cutOff},
	{"cut off", (*attack).cutOff},
	{"late, then cut off", (*attack).lateThenCut},
	{"late, then cut off", (*attack).lateThenCut},
	{"leader stands still, then cut off", (*attack).stallThenCut},
	{"with a deposed leader", (*attack).depose},
	{"shorter timeout", (*attack).shorter},
	{"throttled, then cut off", (*attack).throttled},
	{"held up, then cut off", (*attack).heldUp},
}

// upTo draws a duration.
func (a *attack) upTo(d time.Duration) time.Duration {
	return time.Duration(a.rng.Int64N(int64(d) + 1))
}

func (a *attack) run(t *testing.T) {
	start := time.Now()
	a.srv = testserver.Switch(zktest.Start(t, zktest.Servers(3), testserver.ClockRate(a.rate)))
	time.Sleep(time.Second + a.upTo(2*time.Second))
	a.timeout = a.timeouts[a.rng.IntN(len(a.timeouts))] + a.upTo(2*time.Second).Truncate(10*time.Millisecond)
	a.told = a.rng.IntN(2) == 0
	a.leader, _ = a.srv.Leader()
	a.home = (a.leader + 1 + a.rng.IntN(2)) % 3
	one := attacks[a.rng.IntN(len(attacks))]
	a.name = one.name
	switch late := 500*time.Millisecond + a.upTo(1500*time.Millisecond); {
	case a.name == "held up, then cut off": // all of a proof has to come between two lists
		a.late = 500*time.Millisecond + a.upTo(300*time.Millisecond)
	case a.rng.IntN(4) == 0:
		a.late = late
	}
	if a.late > 0 {
		a.timeout *= 3 // a lease has to last for several answers
	}
	delay := a.upTo(5 * time.Millisecond)
	w := &world{seed: a.seed, plan: plan{servers: 3}, trace: newTrace(), server: a.srv}
	w.checks, w.limits, a.faults = newChecks(w), newLimits(w), newFaults(w)
	a.way = newEndpoint(w, firstManager, "holder")
	a.way.pinned = a.home
	a.way.delays = map[zktest.Direction]time.Duration{zktest.ToServer: delay, zktest.ToClient: delay + a.late}
	a.holder, a.other = a.connect(t, a.way.dial), a.connect(t, a.elsewhere())
	defer time.Sleep(5 * time.Second) // what is on its way arrives nowhere
	defer a.way.cut()
	defer a.holder.Close()
	defer a.other.Close()
	a.take(t)
	a.traffic()
	time.Sleep(a.upTo(2 * a.timeout))
	one.do(a)
	a.await()
	a.at = time.Since(start)
	a.stopTraffic()
	<-a.trafficStopped
	a.heal()
}

// elsewhere is the server of the rival: the leader, or the third server if the leader will be deposed.
func (a *attack) elsewhere() func(context.Context, string, string) (net.Conn, error) {
	if a.name == "with a deposed leader" {
		return a.srv.DialerTo(3 - a.leader - a.home)
	}
	return a.srv.DialerTo(a.leader)
}

func (a *attack) connect(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *session.Manager {
	opts := append(slices.Clone(a.opts), session.WithTimeout(a.timeout), session.WithDialer(dial), session.WithLogger(quiet()))
	if a.told {
		opts = append(opts, session.WithTickTime(2*time.Second))
	}
	m, err := session.Connect(t.Context(), "zookeeper:2181", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// take gives the holder the lock, and has the rival wait for it.
func (a *attack) take(t *testing.T) {
	mine, err := zklock.New(a.holder, "/lock")
	if err != nil {
		t.Fatal(err)
	}
	if a.lease, err = mine.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs, err := zklock.New(a.other, "/lock")
	if err != nil {
		t.Fatal(err)
	}
	a.rivals = make(chan *queue.Lease, 1)
	go func() {
		if l, err := theirs.Acquire(context.Background()); err == nil {
			a.rivals <- l
		} else {
			close(a.rivals)
		}
	}()
}

// traffic has the holder's session send requests at random.
func (a *attack) traffic() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stopTraffic, a.trafficStopped = cancel, make(chan struct{})
	every := []time.Duration{0, 3 * time.Millisecond, 50 * time.Millisecond, 700 * time.Millisecond}[a.rng.IntN(4)]
	rng := rand.New(rand.NewPCG(a.seed, 78))
	go func() {
		defer close(a.trafficStopped)
		s, err := a.holder.Session(ctx)
		if err != nil || every == 0 {
			return
		}
		for ctx.Err() == nil && s.Err() == nil {
			short, done := context.WithTimeout(ctx, time.Second+a.late)
			switch rng.IntN(4) {
			case 0:
				_ = s.Sync(short, "/")
			case 1:
				_ = s.Delete(short, "/none", -1)
			default:
				_, _ = s.Exists(short, "/lock")
			}
			done()
			time.Sleep(time.Duration(rng.Int64N(int64(2 * every))))
		}
	}()
}

// await waits for the rival's grant, and looks at the holder then.
func (a *attack) await() {
	select {
	case _, ok := <-a.rivals:
		if !ok {
			return
		}
		a.granted = true
		for a.lease.Err() == nil {
			a.overlap += time.Millisecond
			time.Sleep(time.Millisecond)
		}
	case <-time.After(3*a.timeout + 25*time.Second):
	}
}

func (a *attack) heal() {
	a.faults.healServers()
	a.srv.Throttle(nil)
	a.way.heal()
}

// nominalTick is that of the servers, by their own clocks.
const nominalTick = 2 * time.Second

// awaitList waits for a list that puts off the end of the session. The end is on a tick, so only every second list moves it.
func (a *attack) awaitList() (tick time.Duration) {
	tick = time.Duration(float64(nominalTick) / a.rate)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the session can be lost, and the way closed
	defer cancel()
	s, err := a.holder.Session(ctx)
	if err != nil {
		return tick
	}
	last, _ := a.srv.Expiry(s.ID())
	for range 3000 {
		if at, _ := a.srv.Expiry(s.ID()); !at.Equal(last) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return tick
}

// aim waits for such a list, and then until shortly before the next one.
func (a *attack) aim() {
	tick := a.awaitList()
	if a.rng.IntN(3) == 0 {
		time.Sleep(a.upTo(tick))
		return
	}
	time.Sleep(tick - 90*time.Millisecond - a.upTo(100*time.Millisecond))
}

// nudge sends the requests of a proof: perhaps a request through the leader, and a write.
func (a *attack) nudge() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*(time.Second+a.late))
	defer cancel()
	s, err := a.holder.Session(ctx)
	if err != nil {
		return
	}
	switch a.rng.IntN(6) {
	case 0:
		return
	case 1:
	case 2:
		_ = s.Sync(ctx, "/")
	default: // as the formula has it
		_ = s.Sync(ctx, "/")
		time.Sleep(100*time.Millisecond + a.upTo(2*time.Millisecond))
	}
	_ = s.Delete(ctx, "/none", -1)
}

func (a *attack) cutOff() {
	a.aim()
	a.nudge()
	a.faults.isolate(a.home)
}

func (a *attack) lateThenCut() {
	late := a.upTo(a.timeout / 3)
	if a.rng.IntN(2) == 0 {
		a.way.close(zktest.ToServer)
		time.Sleep(a.timeout/6 + a.upTo(a.timeout/5))
	} else {
		a.way.close(zktest.ToClient)
		time.Sleep(late)
		a.aim()
	}
	a.way.close(0)
	a.nudge()
	time.Sleep(a.upTo(20 * time.Millisecond))
	a.faults.isolate(a.home)
}

// heldUp lets nothing through to the server from shortly before one list to shortly after the next but one. So that list and
// the one before it do not have the session, while answers to earlier frames still come. Then it lets the session prove what it
// can before the next list.
func (a *attack) heldUp() {
	half := a.awaitList() / 2
	early := a.upTo(20 * time.Millisecond)
	time.Sleep(half - early)
	a.way.close(zktest.ToServer)
	time.Sleep(early + 2*half + a.upTo(30*time.Millisecond))
	a.way.close(0)
	time.Sleep(a.late + 110*time.Millisecond + a.upTo(80*time.Millisecond)) // a sync, the gap, and a write
	a.faults.isolate(a.home)
}

// stallThenCut stops the leader, and then cuts it off. Its frames still arrive for a while.
func (a *attack) stallThenCut() {
	lag := a.upTo(95 * time.Millisecond)
	a.srv.SetPingLag(lag)
	a.srv.HoldServer(a.leader)
	time.Sleep(a.upTo(3 * time.Second))
	a.srv.ReleaseServer(a.leader)
	a.nudge()
	time.Sleep(a.upTo(lag))
	for j := range 3 {
		if j != a.home {
			a.srv.CutLink(a.home, j)
		}
	}
	time.Sleep(a.upTo(60 * time.Millisecond))
	a.faults.isolate(a.home)
}

// depose moves the holder to the leader, and cuts the leader off from the others. These elect a new
// leader at once if they are restarted.
func (a *attack) depose() {
	a.way.change(func() { a.way.pinned = a.leader })
	a.way.cut()
	time.Sleep(200*time.Millisecond + a.upTo(2*time.Second))
	a.faults.isolate(a.leader)
	for i := range 3 {
		if i != a.leader {
			a.srv.StopServer(i)
		}
	}
	for i := range 3 {
		_ = a.srv.StartServer(i)
	}
	if a.rng.IntN(2) == 0 {
		time.Sleep(a.upTo(4 * time.Second))
		a.way.cut()
	}
}

// shorter moves the holder to a server that grants a shorter timeout, and cuts it off.
func (a *attack) shorter() {
	to := 3 - a.leader - a.home
	granted := 4 * time.Second
	if a.late > 0 {
		granted = a.timeout / 2
	}
	a.srv.SetSessionTimeoutsOf(to, granted, granted)
	a.way.change(func() { a.way.pinned = to })
	a.way.cut()
	time.Sleep(200*time.Millisecond + a.upTo(2*time.Second))
	a.faults.isolate(to)
}

func (a *attack) throttled() {
	a.srv.Throttle(func(r zktest.Request) bool {
		return r.Op == zktest.OpMulti || r.Op == zktest.OpSync || r.Op == zktest.OpDelete
	})
	time.Sleep(a.upTo(time.Second))
	a.faults.isolate(a.home)
}
