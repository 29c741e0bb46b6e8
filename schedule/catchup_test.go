package schedule_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// CatchUp runs the ticks behind the record, in their order, and begins with the one of the record if that is open.
func TestCatchUp(t *testing.T) {
	inBubble(t, func(t *world) {
		j, ctx := t.job(), t.Context()
		t.is(schedule.Ran)(j.CatchUp(ctx, later(0), hourly, t.work))
		t.wantRan(0) // nothing is recorded: there is no tick to make up for
		t.is(schedule.Ran)(j.CatchUp(ctx, later(4), hourly, t.work))
		t.wantRan(1, 2, 3, 4)
		t.is(schedule.Done)(j.CatchUp(ctx, later(4), hourly, t.work))
		t.is(schedule.Overtaken)(j.CatchUp(ctx, later(3), hourly, t.work))
		t.wantRan()
		outcome, err := j.CatchUp(ctx, later(8), hourly, t.failsAt(6))
		if t.is(schedule.NotRun, errWork)(outcome, err); !strings.Contains(err.Error(), "1999-11-26T18:00:00Z") {
			t.Error(err)
		}
		t.is(schedule.Ran)(j.CatchUp(ctx, later(8).Add(time.Minute), hourly, t.work)) // which is not one of hourly
		t.wantRan(5, 6, 6, 7, 8, 8)
	})
}

// The schedule sees ticks in the time zone of the tick that it was given, though the record has them in UTC.
func TestCatchUpZone(t *testing.T) {
	inBubble(t, func(t *world) {
		zone := time.FixedZone("elsewhere", 5*3600+1800)
		day := func(n int) time.Time { return time.Date(1999, 11, 26+n, 0, 0, 0, 0, zone) }
		midnight := func(tick time.Time) time.Time {
			return time.Date(tick.Year(), tick.Month(), tick.Day()+1, 0, 0, 0, 0, tick.Location())
		}
		var all []time.Time
		work := func(_ context.Context, tick time.Time) error { all = append(all, tick); return nil }
		j := t.job()
		for _, n := range []int{0, 3} {
			t.is(schedule.Ran)(j.CatchUp(t.Context(), day(n), midnight, work))
		}
		if want := []time.Time{day(0), day(1), day(2), day(3)}; !slices.Equal(all, want) {
			t.Errorf("%v, want %v", all, want)
		}
	})
}

// All replicas were down for some ticks. They come back and make up for them, while their timers fire as ever. Each job
// takes a sixth of the time between two ticks. No tick is left out, and none is run twice.
func TestCatchUpBesideTimers(t *testing.T) {
	longtest.InCI(t)
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
	for what, timer := range map[string]way{"no timer": nil, "a timer runs": run, "a timer tries": try, "a timer catches up": catchUp} {
		for _, replicas := range []int{1, 2} { // that catch up, and whose timers fire; if it is one, the other one's timer fires
			t.Run(what, func(t *testing.T) {
				inBubble(t, func(t *world) {
					jobs := []*schedule.Job{t.job(), t.job()}
					start := time.Now().Truncate(every)
					work := func(ctx context.Context, tick time.Time) error {
						time.Sleep(every / 6)
						return t.work(ctx, later(int(tick.Sub(start)/every)))
					}
					t.is(schedule.Ran)(catchUp(t.Context(), jobs[0], start, work))
					time.Sleep(time.Until(start.Add(missed*every + every/2)))
					var all sync.WaitGroup
					now := time.Now().Truncate(every)
					for i, j := range jobs {
						if i < replicas {
							all.Go(func() {
								outcome, err := catchUp(t.Context(), j, now, work)
								if outcome != schedule.Ran && outcome != schedule.Done || err != nil {
									t.Error(outcome, err)
								}
							})
						}
						if timer != nil && i >= 2-replicas {
							all.Go(func() {
								for n := range further {
									tick := now.Add(time.Duration(n+1) * every)
									time.Sleep(time.Until(tick))
									_, err := timer(t.Context(), j, tick, work)
									must(t, err)
								}
							})
						}
					}
					all.Wait()
					if !slices.IsSorted(t.ran) || !slices.Equal(t.ran[:missed+1], []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
						t.Errorf("ticks %v, want each that was missed once and in order", t.ran)
					}
				})
			})
		}
	}
}

// A replica that gets the lock first begins a later tick. CatchUp says what nobody will run any more.
func TestCatchUpOvertaken(t *testing.T) {
	inBubble(t, func(t *world) {
		a, b, ctx := t.job(), t.job(), t.Context()
		t.is(schedule.Ran)(a.Run(ctx, noon, t.at(0)))
		release := t.hold()
		var both sync.WaitGroup
		both.Go(func() { t.is(schedule.Ran)(b.Run(ctx, later(9), t.at(9))) })
		time.Sleep(time.Second)
		both.Go(func() {
			t.skips(schedule.Overtaken, 8, 1, 8)(a.CatchUp(ctx, later(8), hourly, t.work))
			t.is(schedule.Overtaken)(a.CatchUp(ctx, later(8), hourly, t.work)) // it was told
		})
		time.Sleep(time.Second)
		release()
		both.Wait()
		t.wantRan(0, 9)
	})
}

// While a replica waits, others run ticks. The record says how many of them were done, so it knows how many were left out.
func TestCatchUpOfOthers(t *testing.T) {
	const (
		begins  = `{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":false,"completed":0}`
		isDone  = `{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":1}`
		atNine  = `{"version":1,"tick":"1999-11-26T21:00:00Z","tries":1,"done":`
		noCount = `{"version":1,"tick":"1999-11-26T14:00:00Z","tries":1,"done":true}`
	)
	for what, c := range map[string]struct {
		before, after  string
		n, first, last int // the ticks that were left out
	}{
		"all were done":                     {isDone, atNine + `true,"completed":10}`, 0, 0, 0},
		"all were done, and the last runs":  {isDone, atNine + `false,"completed":9}`, 0, 0, 0},
		"the first ran, and all were done":  {begins, atNine + `true,"completed":10}`, 0, 0, 0},
		"three were left out":               {isDone, atNine + `true,"completed":7}`, 3, 1, 8},
		"the first ran, and failed":         {begins, atNine + `true,"completed":9}`, 1, 0, 8},
		"the version before does not count": {isDone, noCount, 1, 1, 1},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *world) {
				release, over := t.hold(), make(chan struct{})
				t.write(c.before)
				j := t.job()
				go func() {
					defer close(over)
					want := schedule.Overtaken
					if c.after == noCount {
						want = schedule.Done
					}
					check := t.is(want)
					if c.n > 0 {
						check = t.skips(want, c.n, c.first, c.last)
					}
					check(j.CatchUp(t.Context(), later(2), hourly, t.work))
				}()
				time.Sleep(time.Second) // it waits
				t.write(c.after)
				<-over
				t.wantRan()
				release()
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
		check func(*world) func(schedule.Outcome, error)
		want  []int
	}{
		"nobody else": {
			false, nil, func(t *world) func(schedule.Outcome, error) { return t.is(schedule.Ran) }, []int{0, 1, 2, 3, 3, 4, 5},
		},
		"nobody else, at most once": {
			false, []schedule.Option{once},
			func(t *world) func(schedule.Outcome, error) { return t.skips(schedule.Ran, 1, 3, 3) }, []int{0, 1, 2, 3, 4, 5},
		},
		"a later tick": {
			true, nil, func(t *world) func(schedule.Outcome, error) { return t.skips(schedule.Overtaken, 6, 3, 8) }, []int{0, 1, 2, 3, 9},
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *world) {
				a, b, ctx := t.job(c.opts...), t.job(c.opts...), t.Context()
				t.is(schedule.Ran)(a.Run(ctx, noon, t.at(0)))
				var rival sync.WaitGroup
				expired := false
				c.check(t)(a.CatchUp(ctx, later(5), hourly, func(inside context.Context, tick time.Time) error {
					must(t, t.work(ctx, tick))
					if !tick.Equal(later(3)) || expired {
						return nil
					}
					if c.rival {
						rival.Go(func() { t.is(schedule.Ran)(b.Run(ctx, later(9), t.at(9))) })
						time.Sleep(time.Second)
					}
					expired = true
					must(t, t.expire(a.Manager()))
					<-inside.Done()
					return context.Cause(inside)
				}))
				rival.Wait()
				t.wantRan(c.want...)
			})
		})
	}
}

// A tick that fails stays open. If its tries are used up, or another replica begins a later tick, the next CatchUp says that
// it was left out.
func TestCatchUpFails(t *testing.T) {
	for what, opts := range map[string][]schedule.Option{"the tries are used up": {once}, "a later tick": nil} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *world) {
				a, b, ctx := t.job(opts...), t.job(opts...), t.Context()
				t.is(schedule.Ran)(a.Run(ctx, noon, t.at(0)))
				outcome, err := a.CatchUp(ctx, later(4), hourly, t.failsAt(2))
				if t.is(schedule.NotRun, errWork)(outcome, err); errors.As(err, new(*schedule.SkippedError)) {
					t.Error(err)
				}
				t.wantRan(0, 1, 2)
				if opts == nil {
					t.is(schedule.Ran)(b.Run(ctx, later(9), t.at(9)))
					t.skips(schedule.Overtaken, 7, 2, 8)(a.CatchUp(ctx, later(4), hourly, t.work))
					return
				}
				t.skips(schedule.Ran, 1, 2, 2)(a.CatchUp(ctx, later(4), hourly, t.work))
				t.wantRan(3, 4)
				t.is(schedule.Ran, errWork)(a.CatchUp(ctx, later(5), hourly, t.failsAt(5)))
				t.is(schedule.TriesUsedUp)(b.CatchUp(ctx, later(5), hourly, t.work))
			})
		})
	}
}

// A replica that was asked for the lock gives it up after the present tick.
func TestCatchUpRevoked(t *testing.T) {
	inBubble(t, func(t *world) {
		j, ctx := t.job(), t.Context()
		t.is(schedule.Ran)(j.Run(ctx, noon, t.at(0)))
		t.is(schedule.NotRun, queue.ErrRevoked)(j.CatchUp(ctx, later(5), hourly, func(inside context.Context, tick time.Time) error {
			if tick.Equal(later(2)) {
				lease, _ := queue.LeaseFrom(inside)
				must(t, zklock.Revoke(ctx, j.Manager(), lease.Path()))
				<-inside.Done()
			}
			return t.work(inside, tick)
		}))
		t.wantRan(0, 1, 2)
		t.is(schedule.Ran)(j.CatchUp(ctx, later(5), hourly, t.work))
		t.wantRan(3, 4, 5)
	})
}

// The bound of the waits is for what comes before the first call.
func TestCatchUpMaxWait(t *testing.T) {
	inBubble(t, func(t *world) {
		j, ctx := t.job(), queue.WithMaxWait(t.Context(), 3*time.Second)
		t.is(schedule.Ran)(j.Run(ctx, noon, t.at(0)))
		release := t.hold()
		t.is(schedule.NotRun, queue.ErrMaxWait)(j.CatchUp(ctx, later(3), hourly, t.work))
		release()
		t.is(schedule.Ran)(j.CatchUp(ctx, later(3), hourly, func(ctx context.Context, tick time.Time) error {
			time.Sleep(time.Minute)
			return t.work(ctx, tick)
		}))
		t.wantRan(0, 1, 2, 3)
	})
}

// The guard of a record can find the lock's node gone before the lease knows. Run and CatchUp wait for another turn.
func TestGuardKnowsBeforeTheLease(t *testing.T) {
	for _, how := range []string{"Run", "CatchUp"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *world) {
				admin, deleted := t.session(), false
				j := t.jobOf(t.connect(session.WithTrace(session.Trace{Hold: func(context.Context, session.HoldInfo) func(error) {
					if !deleted {
						deleted = true
						names, _, err := admin.Children(t.Context(), path+"/lock")
						must(t, err)
						must(t, admin.Delete(t.Context(), path+"/lock/"+names[0], -1))
						time.Sleep(time.Millisecond) // less than a holder takes to watch its node
					}
					return nil
				}})))
				if how == "Run" {
					t.is(schedule.Ran)(j.Run(t.Context(), noon, t.at(0)))
				} else {
					t.is(schedule.Ran)(j.CatchUp(t.Context(), noon, hourly, t.work))
				}
				t.wantRan(0)
			})
		})
	}
}
