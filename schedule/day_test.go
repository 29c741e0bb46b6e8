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
	"github.com/turnstile-go/turnstile/zktest"
)

// The world of TestDay.
const (
	dayReplicas = 5
	dayEvery    = 15 * time.Minute
	daySkew     = 29 * time.Second // between the clocks of one replica and the next; two of these are as far as a tick may lie ahead
	mostOfAJob  = 3 * time.Minute
	dayTimeout  = 30 * time.Second // of sessions
	outage      = 40 * time.Second // longer than a session lives
)

// TestDay is a day in virtual time of five replicas whose clocks differ by up to two minutes. Each fires at each tick of
// its own clock, and one of them is often late, by up to half an hour. If nothing fails, each tick is run exactly
// once. With faults, each is done at least once, or begun at most as often as it may be.
func TestDay(t *testing.T) {
	longtest.Only(t)
	letPass(t, 24*time.Hour)
}

// TestHours is some hours of such a day.
func TestHours(t *testing.T) { letPass(t, 4*time.Hour) }

func letPass(t *testing.T, long time.Duration) {
	ticks := int(long / dayEvery)
	for what, c := range map[string]struct {
		opts    []schedule.Option
		tries   int // of a tick, at most; 0: any number
		faults  bool
		catchUp bool
	}{
		"at least once":                  {nil, 0, false, false},
		"at most once":                   {[]schedule.Option{schedule.WithMaxTries(1)}, 1, false, false},
		"at least once, with faults":     {nil, 0, true, false},
		"at most once, with faults":      {[]schedule.Option{schedule.WithMaxTries(1)}, 1, true, false},
		"at most twice, with faults":     {[]schedule.Option{schedule.WithMaxTries(2)}, 2, true, false},
		"catching up, with faults":       {nil, 0, true, true},
		"catching up twice, with faults": {[]schedule.Option{schedule.WithMaxTries(2)}, 2, true, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, server *zktest.Server, _ connector) {
				d := &day{
					t: t, server: server, opts: c.opts, faults: c.faults, catchUp: c.catchUp, ticks: ticks,
					first: time.Now().Truncate(dayEvery).Add(2 * dayEvery), tally: make([]tally, ticks),
				}
				d.pass()
				d.check(c.tries)
			})
		})
	}
}

// day is one run of TestDay.
type day struct {
	t       *testing.T
	server  *zktest.Server
	opts    []schedule.Option
	faults  bool
	catchUp bool // the replicas call CatchUp in place of Run
	ticks   int
	first   time.Time // tick

	mu      sync.Mutex
	tally   []tally
	latest  int             // tick that has begun
	running context.Context // of the function that began last
}

// tally is what the functions of a tick have done, in all replicas.
type tally struct{ began, ended int }

func (d *day) tick(n int) time.Time { return d.first.Add(time.Duration(n) * dayEvery) }

func (d *day) random(of uint64) *rand.Rand { return rand.New(rand.NewPCG(1, of)) }

// pass lets the day pass.
func (d *day) pass() {
	var all sync.WaitGroup
	for i := range dayReplicas {
		all.Go(func() { d.replica(i) })
	}
	if d.faults {
		all.Go(d.attack)
	}
	all.Wait()
	if d.catchUp && d.faults { // the last ticks, if all replicas have failed there
		p := d.start()
		defer p.stop()
		random := d.random(dayReplicas + 1)
		for {
			outcome, err := d.run(context.Background(), p, d.ticks-1, random)
			if outcome != schedule.NotRun && err == nil || outcome == schedule.TriesUsedUp {
				return
			}
			if p.line.crashed() {
				p = d.restart(p)
			}
		}
	}
}

// run is what a replica does at tick n.
func (d *day) run(ctx context.Context, p *dayProcess, n int, random *rand.Rand) (schedule.Outcome, error) {
	if !d.catchUp {
		return p.job.Run(ctx, d.tick(n), d.work(p, n, random))
	}
	after := func(tick time.Time) time.Time { return tick.Add(dayEvery) }
	outcome, err := p.job.CatchUp(ctx, d.tick(n), after, func(ctx context.Context, tick time.Time) error {
		return d.work(p, int(tick.Sub(d.first)/dayEvery), random)(ctx)
	})
	if skipped := (*schedule.SkippedError)(nil); errors.As(err, &skipped) {
		if len(d.opts) == 0 {
			d.t.Errorf("tick %d: %v", n, err)
		}
		err = skipped.Err
	}
	return outcome, err
}

// The first replica is started again at once after a crash, the others at the next tick. The last one is
// often late.
const (
	restarted = 0
	sleepy    = dayReplicas - 1
)

// replica runs every tick of its clock.
func (d *day) replica(i int) {
	random := d.random(uint64(i))
	ahead := time.Duration(i-dayReplicas/2) * daySkew
	p := d.start()
	for n := range d.ticks {
		time.Sleep(time.Until(d.tick(n).Add(-ahead)))
		if i == sleepy && random.IntN(2) > 0 {
			time.Sleep(time.Duration(random.Int64N(int64(2 * dayEvery))))
		}
		if p.line.crashed() {
			p = d.restart(p)
		}
		// A job that fails is tried again, but for no longer than until the next tick.
		ctx, cancel := context.WithTimeout(context.Background(), dayEvery-time.Minute)
		for {
			outcome, err := d.run(ctx, p, n, random)
			if !d.faults && err != nil {
				d.t.Errorf("tick %d: %v, %v", n, outcome, err)
			}
			if err == nil || ctx.Err() != nil || p.line.crashed() && i != restarted {
				break
			}
			if p.line.crashed() {
				p = d.restart(p)
			}
		}
		cancel()
	}
	p.stop()
}

func (d *day) restart(p *dayProcess) *dayProcess {
	p.stop()
	return d.start()
}

var errJob = errors.New("the job has failed")

// work is the job of tick n. With faults, something happens to one of three.
func (d *day) work(p *dayProcess, n int, random *rand.Rand) func(context.Context) error {
	return func(ctx context.Context) error {
		d.begin(ctx, n)
		lasts := time.Duration(random.Int64N(int64(mostOfAJob)))
		fault := -1
		if d.faults {
			fault = random.IntN(15)
		}
		switch fault {
		case 0:
			time.Sleep(lasts)
			return errJob
		case 1: // its session is lost in the middle
			time.Sleep(lasts / 2)
			p.line.breakFor(outage)
		case 2: // it crashes in the middle
			time.Sleep(lasts / 2)
			p.line.cut()
			return errJob
		case 3: // it crashes between the job and the record
			time.Sleep(lasts)
			d.end(n)
			p.line.cut()
			return nil
		case 4: // it does not look at its context, and its session is lost
			p.line.breakFor(outage)
			time.Sleep(lasts)
			d.end(n)
			return nil
		}
		select {
		case <-time.After(lasts):
			d.end(n)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *day) begin(ctx context.Context, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running != nil && d.running.Err() == nil && ctx.Err() == nil {
		d.t.Errorf("tick %d begins while another function runs", n)
	}
	if n < d.latest {
		d.t.Errorf("tick %d begins after tick %d", n, d.latest)
	}
	d.tally[n].began++
	d.latest, d.running = n, ctx
}

func (d *day) end(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tally[n].ended++
}

// attack breaks all connections now and then, or stops the leader for some seconds.
func (d *day) attack() {
	random := d.random(dayReplicas)
	for time.Now().Before(d.tick(d.ticks)) {
		time.Sleep(time.Minute + time.Duration(random.Int64N(int64(30*time.Minute))))
		if random.IntN(2) > 0 {
			d.server.Disconnect()
			continue
		}
		if leader, ok := d.server.Leader(); ok {
			d.server.StopServer(leader)
			time.Sleep(time.Duration(random.Int64N(int64(20 * time.Second))))
			must(d.t, d.server.StartServer(leader))
		}
	}
}

// check checks the tally of the day. A tick may be begun so many times; 0: as often as it takes, and then it
// is done.
func (d *day) check(tries int) {
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
			d.t.Errorf("tick %d: %+v", n, c)
		case tries == 0 && c.ended < 1:
			d.t.Errorf("tick %d was never done: %+v", n, c)
		case tries > 0 && c.began > tries:
			d.t.Errorf("tick %d began more than %d times: %+v", n, tries, c)
		}
	}
	longtest.Covered(d.t, "%d ticks, of which %d began more than once and %d were never done", len(d.tally), again, never)
}

// dayProcess is a replica, until it crashes.
type dayProcess struct {
	line    *line
	manager *session.Manager
	job     *schedule.Job
}

func (d *day) start() *dayProcess {
	l := &line{dial: d.server.Dialer()}
	m, err := session.Open(d.server.Hosts(), session.WithDialer(l.connect), session.WithTimeout(dayTimeout),
		session.WithLogger(quiet))
	must(d.t, err)
	return &dayProcess{l, m, newJob(d.t, m, "/jobs/report", d.opts...)}
}

// stop closes the manager. If the process has crashed, that does not reach the servers.
func (p *dayProcess) stop() { _ = p.manager.Close() }

// line is how a process reaches the servers. Once it is cut, nothing that the process does reaches them, as
// after a crash.
type line struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	isCut bool
	until time.Time // it is broken
	conns []net.Conn
}

func (l *line) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	if l.isCut || time.Now().Before(l.until) {
		l.closeAllLocked()
	}
	return c, nil
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	l.closeAllLocked()
}

// breakFor breaks the connection, and all that are made in the time d.
func (l *line) breakFor(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(d)
	l.closeAllLocked()
}

func (l *line) closeAllLocked() {
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *line) crashed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isCut
}
