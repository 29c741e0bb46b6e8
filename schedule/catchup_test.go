package schedule_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

func hourly(tick time.Time) time.Time { return tick.Add(time.Hour) }

// ticks notes which ticks were run, as hours after noon.
type ticks struct {
	mu  sync.Mutex
	all []int
}

func (r *ticks) run(_ context.Context, tick time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, int(tick.Sub(noon)/time.Hour))
	return nil
}

func (r *ticks) want(t *testing.T, want ...int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.all); diff != "" {
		t.Errorf("ticks: %s", diff)
	}
}

// wantSkipped checks that so many ticks between the given hours after noon were left out.
func wantSkipped(t *testing.T, err error, n, first, last int) *schedule.SkippedError {
	t.Helper()
	var skipped *schedule.SkippedError
	switch {
	case !errors.As(err, &skipped):
		t.Errorf("no SkippedError: %v", err)
		return &schedule.SkippedError{}
	case skipped.Ticks != n || !skipped.First.Equal(later(first)) || !skipped.Last.Equal(later(last)):
		t.Errorf("%v: want %d of %d to %d", err, n, first, last)
	}
	return skipped
}

// CatchUp runs the ticks behind the record, in their order, and begins with the one of the record if that is open.
func TestCatchUp(t *testing.T) {
	ctx := patient(t)
	j, all := newJob(t, connect(t), testserver.Path(t)), new(ticks)
	for _, c := range []struct {
		tick int
		want []int
		what schedule.Outcome
	}{
		{0, []int{0}, schedule.Ran}, // nothing is recorded: there is no tick to make up for
		{4, []int{1, 2, 3, 4}, schedule.Ran},
		{4, nil, schedule.Done},
		{3, nil, schedule.Overtaken},
	} {
		all.all = nil
		outcome, err := j.CatchUp(ctx, later(c.tick), hourly, all.run)
		if outcome != c.what || err != nil {
			t.Errorf("tick %d: %v, %v", c.tick, outcome, err)
		}
		all.want(t, c.want...)
	}
	all.all = nil
	outcome, err := j.CatchUp(ctx, later(8), hourly, func(ctx context.Context, tick time.Time) error {
		if tick.Equal(later(6)) {
			return errWork
		}
		return all.run(ctx, tick)
	})
	wantErr(t, "CatchUp", err, errWork)
	if outcome != schedule.NotRun || !strings.Contains(err.Error(), "1999-11-26T18:00:00Z") {
		t.Error(outcome, err)
	}
	outcome, err = j.CatchUp(ctx, later(8).Add(time.Minute), hourly, all.run) // which is not one of hourly
	if outcome != schedule.Ran || err != nil {
		t.Error(outcome, err)
	}
	all.want(t, 5, 6, 7, 8, 8)
}

// All replicas were down for some ticks. They come back and make up for them, while their timers fire as ever. Each job
// takes a sixth of the time between two ticks. No tick is left out, and none is run twice.
func TestCatchUpBesideTimers(t *testing.T) {
	const missed, further, every = 8, 4, 3 * time.Minute
	next := func(tick time.Time) time.Time { return tick.Add(every) }
	type work = func(context.Context, time.Time) error
	type way = func(context.Context, *schedule.Job, time.Time, work) (schedule.Outcome, error)
	run := func(ctx context.Context, j *schedule.Job, tick time.Time, f work) (schedule.Outcome, error) {
		return j.Run(ctx, tick, func(ctx context.Context) error { return f(ctx, tick) })
	}
	try := func(ctx context.Context, j *schedule.Job, tick time.Time, f work) (schedule.Outcome, error) {
		return j.TryRun(ctx, tick, func(ctx context.Context) error { return f(ctx, tick) })
	}
	catchUp := func(ctx context.Context, j *schedule.Job, tick time.Time, f work) (schedule.Outcome, error) {
		return j.CatchUp(ctx, tick, next, f)
	}
	for what, c := range map[string]struct {
		both  bool // both replicas catch up, and both timers fire
		timer way
	}{
		"one replica alone":                       {false, nil},
		"both catch up":                           {true, nil},
		"one catches up, the other's timer runs":  {false, run},
		"one catches up, the other's timer tries": {false, try},
		"both catch up, and both timers run":      {true, run},
		"both catch up, and both timers try":      {true, try},
		"both catch up, and so do both timers":    {true, catchUp},
		"one catches up, and so does the timer":   {false, catchUp},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
				a, b := newJob(t, connect(), "/jobs/report"), newJob(t, connect(), "/jobs/report")
				start := time.Now().Truncate(every)
				all := new(ticks)
				work := func(ctx context.Context, tick time.Time) error {
					time.Sleep(every / 6)
					return all.run(ctx, later(int(tick.Sub(start)/every)))
				}
				_, err := catchUp(t.Context(), a, start, work)
				must(t, err)
				time.Sleep(time.Until(start.Add(missed*every + every/2)))
				jobs := []*schedule.Job{a}
				timers := []*schedule.Job{b}
				if c.both {
					jobs, timers = append(jobs, b), append(timers, a)
				}
				var both sync.WaitGroup
				now := time.Now().Truncate(every)
				for _, j := range jobs {
					both.Go(func() {
						outcome, err := catchUp(t.Context(), j, now, work)
						if outcome != schedule.Ran && outcome != schedule.Done || err != nil {
							t.Error(outcome, err)
						}
					})
				}
				for _, j := range timers {
					if c.timer == nil {
						break
					}
					both.Go(func() {
						for i := range further {
							tick := now.Add(time.Duration(i+1) * every)
							time.Sleep(time.Until(tick))
							_, err := c.timer(t.Context(), j, tick, work)
							must(t, err)
						}
					})
				}
				both.Wait()
				for i := range missed {
					if n := len(slices.DeleteFunc(slices.Clone(all.all), func(tick int) bool { return tick != i+1 })); n != 1 {
						t.Errorf("tick %d was run %d times", i+1, n)
					}
				}
				if !slices.IsSorted(all.all) {
					t.Errorf("not in order: %v", all.all)
				}
			})
		})
	}
}

// A replica that gets the lock first begins a later tick. CatchUp says what nobody will run any more.
func TestCatchUpOvertaken(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		ctx := t.Context()
		a, b, n := newJob(t, connect(), "/jobs/report"), newJob(t, connect(), "/jobs/report"), 0
		_, err := a.Run(ctx, noon, count(&n))
		must(t, err)
		gate, err := zklock.New(connect(), "/jobs/report/lock")
		must(t, err)
		must(t, gate.Lock(ctx))
		var both sync.WaitGroup
		both.Go(func() {
			_, err := b.Run(ctx, later(9), count(&n))
			must(t, err)
		})
		time.Sleep(time.Second)
		both.Go(func() {
			all := new(ticks)
			outcome, err := a.CatchUp(ctx, later(8), hourly, all.run)
			if skipped := wantSkipped(t, err, 8, 1, 8); outcome != schedule.Overtaken || skipped.Err != nil {
				t.Error(outcome, err)
			}
			all.want(t)
			outcome, err = a.CatchUp(ctx, later(8), hourly, all.run) // it was told
			if outcome != schedule.Overtaken || err != nil {
				t.Error(outcome, err)
			}
		})
		time.Sleep(time.Second)
		must(t, gate.Unlock())
		both.Wait()
	})
}

// While a replica waits, others run ticks. The record says how many of them were done, so it knows how many were left out.
func TestCatchUpOfOthers(t *testing.T) {
	const noneLeft = `{"version":1,"tick":"1999-11-26T21:00:00Z","tries":1,"done":true,"completed":10}`
	for what, c := range map[string]struct {
		before, after string
		skipped       [3]int // ticks, first and last
	}{
		"all were done": {`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":1}`, noneLeft, [3]int{}},
		"all were done, and the last runs": {
			`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":1}`,
			`{"version":1,"tick":"1999-11-26T21:00:00Z","tries":1,"done":false,"completed":9}`, [3]int{},
		},
		"the first ran, and all were done": {
			`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":false,"completed":0}`, noneLeft, [3]int{},
		},
		"three were left out": {
			`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":1}`,
			`{"version":1,"tick":"1999-11-26T21:00:00Z","tries":1,"done":true,"completed":7}`, [3]int{3, 1, 8},
		},
		"the first ran, and failed": {
			`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":false,"completed":0}`,
			`{"version":1,"tick":"1999-11-26T21:00:00Z","tries":1,"done":true,"completed":9}`, [3]int{1, 0, 8},
		},
		"the version before does not count": {
			`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":1}`,
			`{"version":1,"tick":"1999-11-26T14:00:00Z","tries":1,"done":true}`, [3]int{1, 1, 1},
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
				ctx := t.Context()
				gate, err := zklock.New(connect(), "/jobs/report/lock")
				must(t, err)
				must(t, gate.Lock(ctx))
				s := testserver.Session(t, gate.Manager())
				_, err = s.Create(ctx, "/jobs/report/last", []byte(c.before), session.Persistent)
				must(t, err)
				j, all := newJob(t, connect(), "/jobs/report"), new(ticks)
				over := make(chan error, 1)
				go func() {
					_, err := j.CatchUp(ctx, later(2), hourly, all.run)
					over <- err
				}()
				time.Sleep(time.Second) // it waits
				_, err = s.Set(ctx, "/jobs/report/last", []byte(c.after), -1)
				must(t, err)
				err = <-over
				if c.skipped[0] > 0 {
					wantSkipped(t, err, c.skipped[0], c.skipped[1], c.skipped[2])
				} else {
					must(t, err)
				}
				all.want(t)
				must(t, gate.Unlock())
			})
		})
	}
}

// A replica whose session is lost in the middle goes on behind the record. If another one has begun a later tick by then, it
// says so.
func TestCatchUpAfterLoss(t *testing.T) {
	for what, c := range map[string]struct {
		rival bool
		opts  []schedule.Option
		want  []int
	}{
		"nobody else":               {false, nil, []int{1, 2, 3, 3, 4, 5}},
		"nobody else, at most once": {false, []schedule.Option{schedule.WithMaxTries(1)}, []int{1, 2, 3, 4, 5}},
		"a later tick":              {true, nil, []int{1, 2, 3, 9}},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
				ctx := t.Context()
				m := connect()
				a, b, n := newJob(t, m, "/jobs/report", c.opts...), newJob(t, connect(), "/jobs/report", c.opts...), 0
				_, err := a.Run(ctx, noon, count(&n))
				must(t, err)
				all := new(ticks)
				var rival sync.WaitGroup
				expired := false
				outcome, err := a.CatchUp(ctx, later(5), hourly, func(inside context.Context, tick time.Time) error {
					must(t, all.run(ctx, tick))
					if !tick.Equal(later(3)) || expired {
						return nil
					}
					if c.rival {
						rival.Go(func() {
							_, err := b.Run(ctx, later(9), func(ctx context.Context) error { return all.run(ctx, later(9)) })
							must(t, err)
						})
						time.Sleep(time.Second)
					}
					expired = true
					s, err := m.Session(ctx)
					must(t, err)
					must(t, server.Expire(ctx, s.ID()))
					<-inside.Done()
					return context.Cause(inside)
				})
				rival.Wait()
				switch {
				case c.rival:
					wantSkipped(t, err, 6, 3, 8)
				case c.opts != nil:
					wantSkipped(t, err, 1, 3, 3)
				default:
					must(t, err)
				}
				if c.rival != (outcome == schedule.Overtaken) || !c.rival != (outcome == schedule.Ran) {
					t.Error(outcome)
				}
				all.want(t, c.want...)
			})
		})
	}
}

// A tick that fails stays open. If its tries are used up, or another replica begins a later tick, the next CatchUp says that
// it was left out.
func TestCatchUpFails(t *testing.T) {
	for what, c := range map[string]struct {
		opts  []schedule.Option
		later bool
	}{
		"the tries are used up": {[]schedule.Option{schedule.WithMaxTries(1)}, false},
		"a later tick":          {nil, true},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, path, n := patient(t), testserver.Path(t), 0
			a, b := newJob(t, connect(t), path, c.opts...), newJob(t, connect(t), path, c.opts...)
			_, err := a.Run(ctx, noon, count(&n))
			must(t, err)
			all := new(ticks)
			fails := func(ctx context.Context, tick time.Time) error {
				must(t, all.run(ctx, tick))
				if tick.Equal(later(2)) {
					return errWork
				}
				return nil
			}
			outcome, err := a.CatchUp(ctx, later(4), hourly, fails)
			wantErr(t, "CatchUp", err, errWork)
			if outcome != schedule.NotRun || errors.As(err, new(*schedule.SkippedError)) {
				t.Error(outcome, err)
			}
			all.want(t, 1, 2)
			if c.later {
				_, err := b.Run(ctx, later(9), count(&n))
				must(t, err)
			}
			outcome, err = a.CatchUp(ctx, later(4), hourly, all.run)
			if c.later {
				if wantSkipped(t, err, 7, 2, 8); outcome != schedule.Overtaken {
					t.Error(outcome)
				}
				return
			}
			if wantSkipped(t, err, 1, 2, 2); outcome != schedule.Ran {
				t.Error(outcome)
			}
			all.want(t, 1, 2, 3, 4)
			outcome, err = a.CatchUp(ctx, later(5), hourly, func(context.Context, time.Time) error { return errWork })
			if outcome != schedule.Ran || !errors.Is(err, errWork) {
				t.Error(outcome, err)
			}
			if outcome, err = b.CatchUp(ctx, later(5), hourly, all.run); outcome != schedule.TriesUsedUp || err != nil {
				t.Error(outcome, err)
			}
		})
	}
}

// A replica that was asked for the lock gives it up after the present tick.
func TestCatchUpRevoked(t *testing.T) {
	ctx, n := patient(t), 0
	m := connect(t)
	j, all := newJob(t, m, testserver.Path(t)), new(ticks)
	_, err := j.Run(ctx, noon, count(&n))
	must(t, err)
	outcome, err := j.CatchUp(ctx, later(5), hourly, func(inside context.Context, tick time.Time) error {
		if tick.Equal(later(2)) {
			lease, _ := queue.LeaseFrom(inside)
			must(t, zklock.Revoke(ctx, m, lease.Path()))
			<-inside.Done()
		}
		return all.run(ctx, tick)
	})
	wantErr(t, "CatchUp", err, queue.ErrRevoked)
	if outcome != schedule.NotRun {
		t.Error(outcome)
	}
	all.want(t, 1, 2)
	outcome, err = j.CatchUp(ctx, later(5), hourly, all.run)
	if outcome != schedule.Ran || err != nil {
		t.Error(outcome, err)
	}
	all.want(t, 1, 2, 3, 4, 5)
}

// The bound of the waits is for what comes before the first call.
func TestCatchUpMaxWait(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		ctx := queue.WithMaxWait(t.Context(), 3*time.Second)
		j, all, n := newJob(t, connect(), "/jobs/report"), new(ticks), 0
		_, err := j.Run(ctx, noon, count(&n))
		must(t, err)
		gate, err := zklock.New(connect(), "/jobs/report/lock")
		must(t, err)
		must(t, gate.Lock(ctx))
		outcome, err := j.CatchUp(ctx, later(3), hourly, all.run)
		wantErr(t, "CatchUp", err, queue.ErrMaxWait)
		if outcome != schedule.NotRun {
			t.Error(outcome)
		}
		must(t, gate.Unlock())
		outcome, err = j.CatchUp(ctx, later(3), hourly, func(ctx context.Context, tick time.Time) error {
			time.Sleep(time.Minute)
			return all.run(ctx, tick)
		})
		if outcome != schedule.Ran || err != nil {
			t.Error(outcome, err)
		}
		all.want(t, 1, 2, 3)
	})
}

// The schedule sees ticks in the time zone of the tick that it was given, though the record has them in UTC.
func TestCatchUpZone(t *testing.T) {
	ctx, n := patient(t), 0
	j := newJob(t, connect(t), testserver.Path(t))
	zone := time.FixedZone("elsewhere", 5*3600+1800)
	day := func(n int) time.Time { return time.Date(1999, 11, 26+n, 0, 0, 0, 0, zone) }
	midnight := func(tick time.Time) time.Time {
		return time.Date(tick.Year(), tick.Month(), tick.Day()+1, 0, 0, 0, 0, tick.Location())
	}
	_, err := j.Run(ctx, day(0), count(&n))
	must(t, err)
	var all []time.Time
	outcome, err := j.CatchUp(ctx, day(3), midnight, func(_ context.Context, tick time.Time) error {
		all = append(all, tick)
		return nil
	})
	if outcome != schedule.Ran || err != nil {
		t.Error(outcome, err)
	}
	if want := []time.Time{day(1), day(2), day(3)}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// A bad argument is an error, and nothing is run.
func TestCatchUpInput(t *testing.T) {
	ctx, n := patient(t), 0
	j, all := newJob(t, connect(t), testserver.Path(t)), new(ticks)
	_, err := j.Run(ctx, noon, count(&n))
	must(t, err)
	for what, c := range map[string]struct {
		tick time.Time
		next func(time.Time) time.Time
		f    func(context.Context, time.Time) error
	}{
		"no schedule":            {later(1), nil, all.run},
		"no function":            {later(1), hourly, nil},
		"no tick":                {time.Time{}, hourly, all.run},
		"a tick that lies ahead": {time.Now().Truncate(time.Hour).Add(2 * time.Hour), hourly, all.run},
		"no grid":                {later(1).Add(1), hourly, all.run},
		"the same tick again":    {later(1), func(tick time.Time) time.Time { return tick }, all.run},
		"nanoseconds":            {later(1), func(tick time.Time) time.Time { return tick.Add(1) }, all.run},
	} {
		outcome, err := j.CatchUp(ctx, c.tick, c.next, c.f)
		wantErr(t, what, err, session.ErrInvalid)
		if outcome != schedule.NotRun {
			t.Error(what, outcome)
		}
	}
	all.want(t)
}
