package schedule_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
)

// The world of TestDay.
const (
	dayReplicas = 5
	dayEvery    = 15 * time.Minute
	daySkew     = 29 * time.Second // between the clocks of one replica and the next; two of these are as far as a tick may lie ahead
	mostOfAJob  = 3 * time.Minute
	dayTimeout  = 30 * time.Second // of sessions
	outage      = 40 * time.Second // longer than a session lives
	ever        = 1000 * time.Hour
)

// TestDay is a day in virtual time of five replicas whose clocks differ by up to two minutes. Each fires at each tick of
// its own clock, and one of them is often late, by up to half an hour. If nothing fails, each tick is run exactly
// once. With faults, each is done at least once, or begun at most as often as it may be.
func TestDay(t *testing.T) {
	longtest.Only(t)
	letPass(t, 24*time.Hour)
}

// TestHours is some hours of such a day.
func TestHours(t *testing.T) { letPass(t, 90*time.Minute) }

func letPass(t *testing.T, long time.Duration) {
	for what, c := range map[string]struct {
		tries           int // of a tick, at most; 0: any number
		faults, catchUp bool
	}{
		"at least once":                  {0, false, false},
		"at most once":                   {1, false, false},
		"at least once, with faults":     {0, true, false},
		"at most once, with faults":      {1, true, false},
		"at most twice, with faults":     {2, true, false},
		"catching up, with faults":       {0, true, true},
		"catching up twice, with faults": {2, true, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *world) {
				d := &day{
					world: t, tries: c.tries, faults: c.faults, catchUp: c.catchUp,
					first: time.Now().Truncate(dayEvery).Add(2 * dayEvery), tally: make([]tally, long/dayEvery),
				}
				d.pass()
				d.check()
			})
		})
	}
}

// day is one run of TestDay.
type day struct {
	*world
	tries           int
	faults, catchUp bool
	first           time.Time // tick

	mu      sync.Mutex
	tally   []tally         // of each tick
	latest  int             // tick that has begun
	running context.Context // of the function that began last
}

// tally is what the functions of a tick have done, in all replicas.
type tally struct{ began, ended int }

func (d *day) tick(n int) time.Time { return d.first.Add(time.Duration(n) * dayEvery) }

func (d *day) pass() {
	var all sync.WaitGroup
	for i := range dayReplicas {
		all.Go(func() { d.replica(i) })
	}
	if d.faults {
		all.Go(d.attack)
	}
	all.Wait()
	if d.catchUp { // the last ticks, if all replicas have failed there
		r := d.start(dayReplicas + 1)
		defer r.stop()
		for {
			outcome, err := r.run(context.Background(), len(d.tally)-1)
			if outcome != schedule.NotRun && err == nil || outcome == schedule.TriesUsedUp {
				return
			}
			r.restartIfDead()
		}
	}
}

// The first replica is started again at once after a crash, the others at the next tick. The last one is often late.
const (
	restarted = 0
	sleepy    = dayReplicas - 1
)

// replica runs every tick of its clock.
func (d *day) replica(i int) {
	ahead := time.Duration(i-dayReplicas/2) * daySkew
	r := d.start(i)
	for n := range d.tally {
		time.Sleep(time.Until(d.tick(n).Add(-ahead)))
		if i == sleepy && r.random.IntN(2) > 0 {
			time.Sleep(time.Duration(r.random.Int64N(int64(2 * dayEvery))))
		}
		// A job that fails is tried again, but for no longer than until the next tick.
		ctx, cancel := context.WithTimeout(context.Background(), dayEvery-time.Minute)
		for {
			r.restartIfDead()
			outcome, err := r.run(ctx, n)
			if !d.faults && err != nil {
				d.Errorf("tick %d: %v, %v", n, outcome, err)
			}
			if err == nil || ctx.Err() != nil || r.line.down() > outage && i != restarted {
				break
			}
		}
		cancel()
	}
	r.stop()
}

// dayReplica is a replica, which can crash and be started again.
type dayReplica struct {
	*day
	random *rand.Rand
	line   *line
	job    *schedule.Job
}

func (d *day) start(of int) *dayReplica {
	r := &dayReplica{day: d, random: rand.New(rand.NewPCG(1, uint64(of)))}
	r.begin()
	return r
}

func (r *dayReplica) begin() {
	r.line = &line{dial: r.server.Dialer()}
	var opts []schedule.Option
	if r.tries > 0 {
		opts = []schedule.Option{schedule.WithMaxTries(r.tries)}
	}
	r.job = r.jobOf(r.connect(session.WithDialer(r.line.connect), session.WithTimeout(dayTimeout)), opts...)
}

// stop closes the manager. If the process has crashed, that does not reach the servers.
func (r *dayReplica) stop() { _ = r.job.Manager().Close() }

func (r *dayReplica) restartIfDead() {
	if r.line.down() > outage {
		r.stop()
		r.begin()
	}
}

// run is what a replica does at tick n.
func (r *dayReplica) run(ctx context.Context, n int) (schedule.Outcome, error) {
	if !r.catchUp {
		return r.job.Run(ctx, r.tick(n), func(ctx context.Context) error { return r.work(ctx, n) })
	}
	after := func(tick time.Time) time.Time { return tick.Add(dayEvery) }
	outcome, err := r.job.CatchUp(ctx, r.tick(n), after, func(ctx context.Context, tick time.Time) error {
		return r.work(ctx, int(tick.Sub(r.first)/dayEvery))
	})
	if skipped := (*schedule.SkippedError)(nil); errors.As(err, &skipped) {
		if r.tries == 0 {
			r.Errorf("tick %d: %v", n, err)
		}
		err = skipped.Err
	}
	return outcome, err
}

// work is the job of tick n. With faults, something happens to one of three.
func (r *dayReplica) work(ctx context.Context, n int) error {
	r.count(ctx, n)
	lasts := time.Duration(r.random.Int64N(int64(mostOfAJob)))
	fault := -1
	if r.faults {
		fault = r.random.IntN(15)
	}
	switch fault {
	case 0:
		time.Sleep(lasts)
		return errWork
	case 1: // its session is lost in the middle
		time.Sleep(lasts / 2)
		r.line.breakFor(outage)
	case 2: // it crashes in the middle
		time.Sleep(lasts / 2)
		r.line.breakFor(ever)
		return errWork
	case 3: // it crashes between the job and the record
		time.Sleep(lasts)
		r.done(n)
		r.line.breakFor(ever)
		return nil
	case 4: // it does not look at its context, and its session is lost
		r.line.breakFor(outage)
		time.Sleep(lasts)
		r.done(n)
		return nil
	}
	select {
	case <-time.After(lasts):
		r.done(n)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *day) count(ctx context.Context, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running != nil && d.running.Err() == nil && ctx.Err() == nil {
		d.Errorf("tick %d begins while another function runs", n)
	}
	if n < d.latest {
		d.Errorf("tick %d begins after tick %d", n, d.latest)
	}
	d.tally[n].began++
	d.latest, d.running = n, ctx
}

func (d *day) done(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tally[n].ended++
}

// attack breaks all connections now and then, or stops the leader for some seconds.
func (d *day) attack() {
	random := rand.New(rand.NewPCG(1, dayReplicas))
	for time.Now().Before(d.tick(len(d.tally))) {
		time.Sleep(time.Minute + time.Duration(random.Int64N(int64(30*time.Minute))))
		if random.IntN(2) > 0 {
			d.server.Disconnect()
			continue
		}
		if leader, ok := d.server.Leader(); ok {
			d.server.StopServer(leader)
			time.Sleep(time.Duration(random.Int64N(int64(20 * time.Second))))
			must(d, d.server.StartServer(leader))
		}
	}
}

// check checks the tally of the day: without a bound, each tick is tried as often as it takes, and then it is done.
func (d *day) check() {
	again, never := 0, 0
	for n, c := range d.tally {
		if c.began > 1 {
			again++
		}
		if c.ended == 0 {
			never++
		}
		switch {
		case !d.faults && c != tally{1, 1}:
			d.Errorf("tick %d: %+v", n, c)
		case d.tries == 0 && c.ended < 1:
			d.Errorf("tick %d was never done: %+v", n, c)
		case d.tries > 0 && c.began > d.tries:
			d.Errorf("tick %d began more than %d times: %+v", n, d.tries, c)
		}
	}
	longtest.Covered(d.T, "%d ticks, of which %d began more than once and %d were never done", len(d.tally), again, never)
}

// line is how a process reaches the servers. After a crash it is down for ever: nothing that the process does reaches them.
type line struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	until time.Time // it is down
	conns []net.Conn
}

func (l *line) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns = append(l.conns, c); time.Now().Before(l.until) {
		l.closeLocked()
	}
	return c, nil
}

// breakFor breaks the connection, and all that are made in the time d.
func (l *line) breakFor(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(d)
	l.closeLocked()
}

func (l *line) closeLocked() {
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// down returns for how long no connection can be made.
func (l *line) down() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until)
}
