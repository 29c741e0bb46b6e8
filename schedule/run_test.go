package schedule_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// What a replica does with a tick depends on the record alone, and the outcome says why.
func TestTicks(t *testing.T) {
	const ran, done, overtaken, usedUp = schedule.Ran, schedule.Done, schedule.Overtaken, schedule.TriesUsedUp
	type step struct {
		tick time.Time
		fail bool
		want schedule.Outcome
	}
	zone := time.FixedZone("elsewhere", 5*3600)
	for what, c := range map[string]struct {
		opts  []schedule.Option
		steps []step
		last  schedule.Record
	}{
		"each once": {
			nil, []step{{later(0), false, ran}, {later(0), false, done}, {later(1), false, ran}, {later(1), false, done}},
			schedule.Record{Tick: later(1), Tries: 1, Done: true, Completed: 2},
		},
		"an older tick": {
			nil, []step{{later(2), false, ran}, {later(1), false, overtaken}, {later(0), false, overtaken}},
			schedule.Record{Tick: later(2), Tries: 1, Done: true, Completed: 1},
		},
		"a tick of another time zone": {
			nil, []step{{later(0), false, ran}, {later(0).In(zone), false, done}, {later(1).In(zone), false, ran}, {later(1), false, done}},
			schedule.Record{Tick: later(1), Tries: 1, Done: true, Completed: 2},
		},
		"a millisecond later": {
			nil, []step{{later(0), false, ran}, {later(0).Add(1e6), false, ran}, {later(0), false, overtaken}},
			schedule.Record{Tick: later(0).Add(1e6), Tries: 1, Done: true, Completed: 2},
		},
		"tried again until it is done": {
			nil, []step{{later(0), true, ran}, {later(0), true, ran}, {later(0), false, ran}, {later(0), false, done}},
			schedule.Record{Tick: later(0), Tries: 3, Done: true, Completed: 1},
		},
		"tried no more after a later one": {
			nil, []step{{later(0), true, ran}, {later(1), true, ran}, {later(0), false, overtaken}},
			schedule.Record{Tick: later(1), Tries: 1},
		},
		"at most once": {
			[]schedule.Option{once}, []step{{later(0), true, ran}, {later(0), false, usedUp}, {later(1), false, ran}, {later(1), false, done}},
			schedule.Record{Tick: later(1), Tries: 1, Done: true, Completed: 1},
		},
		"at most twice": {
			[]schedule.Option{twice}, []step{{later(0), true, ran}, {later(0), true, ran}, {later(0), false, usedUp}, {later(1), true, ran}},
			schedule.Record{Tick: later(1), Tries: 1},
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *world) {
				a, b := t.job(c.opts...), t.job(c.opts...)
				for i, s := range c.steps {
					run := a.Run
					if i%2 > 0 {
						run = b.TryRun
					}
					called, fails := false, error(nil)
					if s.fail {
						fails = errWork
					}
					outcome, err := run(t.Context(), s.tick, func(context.Context) error { called = true; return fails })
					if outcome != s.want || called != (s.want == ran) || !errors.Is(err, fails) {
						t.Errorf("step %d: %v, called %v, %v", i, outcome, called, err)
					}
				}
				t.wantLast(a, c.last)
			})
		})
	}
}

// A replica that waits learns from the record that it need not wait any longer: when the job is done, or with at most once
// when it has begun. If the replica that runs the job fails or loses its session, the other one takes over.
func TestWaiting(t *testing.T) {
	const work = 10 * time.Minute
	fails := func(*world, *session.Manager) error { return errWork }
	for what, c := range map[string]struct {
		opts  []schedule.Option
		end   func(*world, *session.Manager) error // of the first replica's work
		waits time.Duration                        // the other one, about
		want  schedule.Outcome                     // of the other one
	}{
		"at least once":                 {nil, nil, work, schedule.Done},
		"at most once":                  {[]schedule.Option{once}, nil, 0, schedule.TriesUsedUp},
		"at least once, and it fails":   {nil, fails, work, schedule.Ran},
		"twice, and it fails":           {[]schedule.Option{twice}, fails, work, schedule.Ran},
		"at least once, and it is lost": {nil, (*world).expire, work, schedule.Ran},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *world) {
				a, b := t.job(c.opts...), t.job(c.opts...)
				began, ended := make(chan struct{}), make(chan error, 1)
				go func() {
					outcome, err := a.Run(t.Context(), noon, func(context.Context) error {
						close(began)
						time.Sleep(work)
						if c.end == nil {
							return nil
						}
						return c.end(t, a.Manager())
					})
					if outcome != schedule.Ran {
						t.Errorf("the first replica: %v", outcome)
					}
					ended <- err
				}()
				<-began
				start := time.Now()
				t.is(c.want)(b.Run(t.Context(), noon, func(context.Context) error { return nil }))
				if waited := time.Since(start); (waited - c.waits).Abs() > time.Minute {
					t.Errorf("it waits for %v", waited)
				}
				if err := <-ended; (err != nil) != (c.end != nil) {
					t.Errorf("the first replica: %v", err)
				}
			})
		})
	}
}

// A replica that waits leaves at the end of its context, and a try does not wait. A job whose caller has gone is recorded all
// the same: it is done.
func TestContextEnds(t *testing.T) {
	inBubble(t, func(t *world) {
		a, b := t.job(), t.job()
		ctx, cancel := context.WithCancel(t.Context())
		t.is(schedule.Ran)(a.Run(ctx, noon, func(context.Context) error {
			t.is(schedule.Busy)(b.TryRun(t.Context(), later(1), t.at(1)))
			ends, cancelWait := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancelWait()
			t.is(schedule.NotRun, context.DeadlineExceeded)(b.Run(ends, later(1), t.at(1)))
			cancel()
			return nil
		}))
		t.wantLast(a, schedule.Record{Tick: noon, Tries: 1, Done: true, Completed: 1})
		t.is(schedule.NotRun, context.Canceled)(a.Run(ctx, later(1), t.at(1)))
		t.wantRan()
		t.is(schedule.Ran)(b.Run(t.Context(), later(1), t.at(1)))
	})
}

// The goroutines of an owner run one job at a time, as others do: an owner that has the job's lock does not enter it
// again. In the job's function the owner is there for other locks.
func TestOwner(t *testing.T) {
	inBubble(t, func(t *world) {
		job := t.job()
		mx, err := zklock.New(job.Manager(), "/locks/owned")
		must(t, err)
		owner := queue.WithOwner(t.Context())
		must(t, mx.Lock(owner))
		running := 0
		var all sync.WaitGroup
		for _, n := range []int{1, 1, 2} {
			all.Go(func() {
				_, err := job.Run(owner, later(n), func(ctx context.Context) error {
					if running++; running > 1 {
						t.Error("two functions of a job run at once")
					}
					defer func() { running-- }()
					time.Sleep(time.Minute)
					must(t, mx.Lock(ctx)) // again
					must(t, mx.Unlock())
					return t.work(ctx, later(n))
				})
				must(t, err)
			})
			time.Sleep(time.Second)
		}
		all.Wait()
		t.wantRan(1, 2)
		t.is(schedule.Ran)(job.TryRun(owner, later(3), func(ctx context.Context) error {
			t.is(schedule.Busy)(job.TryRun(ctx, later(4), t.at(4)))
			return nil
		}))
	})
}

// A replica that comes late looks, and writes nothing. Last makes nothing, and says by a zero tick that nothing has run.
func TestCost(t *testing.T) {
	inBubble(t, func(t *world) {
		a, b := t.job(), t.job()
		costs := func(reads int) {
			t.Helper()
			if n := t.server.Count(zktest.On(zktest.OpGetData, "/jobs")); n != reads {
				t.Errorf("%d reads, want %d", n, reads)
			}
			if n := t.server.Count(zktest.Any(zktest.OpCreate, zktest.OpCreateContainer, zktest.OpMulti, zktest.OpDelete)); n != 0 {
				t.Errorf("%d writes", n)
			}
		}
		t.wantLast(a, schedule.Record{})
		costs(1)
		for i := range 3 {
			t.is(schedule.Ran)(a.Run(t.Context(), later(i), t.at(i)))
			t.server.ResetRequests()
			t.is(schedule.Done)(b.Run(t.Context(), later(i), t.at(i)))
			costs(1)
		}
	})
}

// A Run that is cancelled between its directory and its record leaves no directory that servers keep: before 3.10 they
// remove only containers that have had a child.
func TestCancelledRunLeavesNoDirectory(t *testing.T) {
	inBubble(t, func(t *world) {
		ctx, cancel := context.WithCancel(t.Context())
		m := t.connect(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				return ctx, func(err error) {
					if r.Op == "create" && r.Path == path && err == nil {
						cancel()
					}
				}
			},
		}))
		t.is(schedule.NotRun, context.Canceled)(t.jobOf(m).Run(ctx, noon, t.at(0)))
		time.Sleep(time.Minute)
		testserver.Switch(t.server).ReapContainers()
		s := testserver.Session(t, m)
		must(t, s.Sync(t.Context(), "/"))
		if children, _, err := s.Children(t.Context(), "/jobs"); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("/jobs is there, with %v: %v", children, err)
		}
	})
}

// The hook is told of each tick what has become of it, also of a function that panics.
func TestHook(t *testing.T) {
	inBubble(t, func(t *world) {
		var told []string
		m := t.connect(session.WithTrace(session.Trace{Job: func(_ context.Context, j session.JobInfo) {
			if j.Outcome == "" {
				told = append(told, "new")
				return
			}
			if j.Path != path || j.Name != "nightly" || j.Chroot != "/" {
				t.Errorf("%+v", j)
			}
			text := j.Tick.Sub(noon).String() + " " + j.Outcome
			if j.Ticks != 1 {
				text += ", several"
			}
			if j.Err != nil {
				text += ", with an error"
			}
			told = append(told, text)
		}}))
		j, ctx := t.jobOf(m, schedule.WithName("nightly"), once), t.Context()
		_, _ = j.Run(ctx, noon, t.at(0))
		_, _ = j.Run(ctx, noon, t.at(0))
		_, _ = j.TryRun(ctx, later(1), func(context.Context) error {
			_, _ = j.TryRun(ctx, later(2), t.at(2))
			return errWork
		})
		_, _ = j.Run(ctx, later(1), t.at(1))
		_, _ = j.Run(ctx, noon, t.at(0))
		_, _ = j.Run(ctx, noon.Add(1), t.at(0))
		func() {
			defer func() { _ = recover() }()
			_, _ = j.Run(ctx, later(2), func(context.Context) error { panic("out of paper") })
		}()
		_, _ = j.CatchUp(ctx, later(4), hourly, t.work)
		want := []string{
			"new", "0s ran", "0s done", "2h0m0s busy", "1h0m0s ran, with an error", "1h0m0s tries_used_up", "0s overtaken",
			"1ns not_run, with an error", "2h0m0s ran, with an error",
			"3h0m0s ran", "4h0m0s ran", "2h0m0s skipped, with an error",
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
	})
}

// The first of five replicas dies in the middle of a migration, which the next one repeats. No replica goes on before it is
// done. A replica of an earlier version goes on at once. A later version is tried three times, by all replicas together, and
// keeps all of them from going on. The one after it is tried anew.
func TestMigration(t *testing.T) {
	inBubble(t, func(t *world) {
		begun, done := 0, false
		var replicas sync.WaitGroup
		for range 5 {
			m := t.connect()
			replicas.Go(func() {
				err := migrateOnce(t.Context(), m, noon, func(ctx context.Context) error {
					if begun++; begun == 1 {
						return t.expire(m)
					}
					time.Sleep(time.Minute)
					done = true
					return ctx.Err()
				})
				if err == nil && !done || err != nil && !errors.Is(err, session.ErrLost) {
					t.Errorf("a replica goes on with %v", err)
				}
			})
		}
		replicas.Wait()
		if begun != 2 {
			t.Errorf("begun %d times", begun)
		}
		for _, version := range []time.Time{noon, later(-1)} {
			must(t, migrateOnce(t.Context(), t.connect(), version, func(context.Context) error {
				t.Error("migrated again")
				return nil
			}))
		}
		for _, want := range []error{errWork, errWork, errWork, errNotMigrated, errNotMigrated} {
			wantErr(t, "a replica", migrateOnce(t.Context(), t.connect(), later(1), func(context.Context) error { return errWork }), want)
		}
		must(t, migrateOnce(t.Context(), t.connect(), later(2), func(context.Context) error { return nil }))
	})
}
