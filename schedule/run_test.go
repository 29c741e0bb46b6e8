package schedule_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/zktest"
)

var errWork = errors.New("the work has failed")

// What a replica does with a tick depends on the record alone, and the outcome says why.
func TestTicks(t *testing.T) {
	const ran, done, overtaken, usedUp = schedule.Ran, schedule.Done, schedule.Overtaken, schedule.TriesUsedUp
	type step struct {
		tick time.Time
		fail bool
		want schedule.Outcome
	}
	elsewhere := time.FixedZone("elsewhere", 5*3600)
	for what, c := range map[string]struct {
		opts  []schedule.Option
		steps []step
		last  schedule.Record
	}{
		"each once": {
			steps: []step{{later(0), false, ran}, {later(0), false, done}, {later(1), false, ran}, {later(1), false, done}},
			last:  schedule.Record{Tick: later(1), Tries: 1, Done: true, Completed: 2},
		},
		"an older tick": {
			steps: []step{{later(2), false, ran}, {later(1), false, overtaken}, {later(0), false, overtaken}},
			last:  schedule.Record{Tick: later(2), Tries: 1, Done: true, Completed: 1},
		},
		"a tick of another time zone": {
			steps: []step{
				{later(0), false, ran}, {later(0).In(elsewhere), false, done},
				{later(1).In(elsewhere), false, ran}, {later(1), false, done},
			},
			last: schedule.Record{Tick: later(1), Tries: 1, Done: true, Completed: 2},
		},
		"a millisecond later": {
			steps: []step{{later(0), false, ran}, {later(0).Add(1e6), false, ran}, {later(0), false, overtaken}},
			last:  schedule.Record{Tick: later(0).Add(1e6), Tries: 1, Done: true, Completed: 2},
		},
		"tried again until it is done": {
			steps: []step{{later(0), true, ran}, {later(0), true, ran}, {later(0), false, ran}, {later(0), false, done}},
			last:  schedule.Record{Tick: later(0), Tries: 3, Done: true, Completed: 1},
		},
		"tried no more after a later one": {
			steps: []step{{later(0), true, ran}, {later(1), true, ran}, {later(0), false, overtaken}},
			last:  schedule.Record{Tick: later(1), Tries: 1},
		},
		"at most once": {
			opts:  []schedule.Option{schedule.WithMaxTries(1)},
			steps: []step{{later(0), true, ran}, {later(0), false, usedUp}, {later(1), false, ran}, {later(1), false, done}},
			last:  schedule.Record{Tick: later(1), Tries: 1, Done: true, Completed: 1},
		},
		"at most twice": {
			opts:  []schedule.Option{schedule.WithMaxTries(2)},
			steps: []step{{later(0), true, ran}, {later(0), true, ran}, {later(0), false, usedUp}, {later(1), true, ran}},
			last:  schedule.Record{Tick: later(1), Tries: 1},
		},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, path := patient(t), testserver.Path(t)+"/jobs/report" // nothing of it is there
			replicas := []*schedule.Job{newJob(t, connect(t), path, c.opts...), newJob(t, connect(t), path, c.opts...)}
			for i, s := range c.steps {
				run := replicas[0].Run
				if i%2 > 0 {
					run = replicas[1].TryRun
				}
				called := false
				outcome, err := run(ctx, s.tick, func(context.Context) error {
					called = true
					if s.fail {
						return errWork
					}
					return nil
				})
				if outcome != s.want || called != (s.want == ran) || errors.Is(err, errWork) != s.fail || err != nil && !s.fail {
					t.Errorf("step %d: %v, called %v, %v", i, outcome, called, err)
				}
			}
			last, err := replicas[0].Last(ctx)
			must(t, err)
			if diff := cmp.Diff(c.last, last, cmpopts.IgnoreFields(schedule.Record{}, "By", "At")); diff != "" {
				t.Error(diff)
			}
			if last.By == "" || time.Since(last.At).Abs() > time.Hour {
				t.Errorf("by %q at %v", last.By, last.At)
			}
		})
	}
}

// A replica that waits learns from the record that it need not wait any longer: when the job is done, or with
// at most once when it has begun. If the replica that runs the job fails or loses its session, the other one
// takes over.
func TestWaiting(t *testing.T) {
	const work = time.Hour
	for what, c := range map[string]struct {
		opts  []schedule.Option
		end   func(ctx context.Context, server *zktest.Server, id int64) error // of the first replica's work
		waits time.Duration                                                    // the other one, about
		want  schedule.Outcome                                                 // of the other one
	}{
		"at least once": {nil, nil, work, schedule.Done},
		"at most once":  {[]schedule.Option{schedule.WithMaxTries(1)}, nil, 0, schedule.TriesUsedUp},
		"at least once, and it fails": {
			nil, func(context.Context, *zktest.Server, int64) error { return errWork }, work, schedule.Ran,
		},
		"twice, and it fails": {
			[]schedule.Option{schedule.WithMaxTries(2)},
			func(context.Context, *zktest.Server, int64) error { return errWork }, work, schedule.Ran,
		},
		"at least once, and it is lost": {
			nil, func(ctx context.Context, s *zktest.Server, id int64) error { return s.Expire(ctx, id) }, work, schedule.Ran,
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
				ctx := t.Context()
				m := connect()
				a, b := newJob(t, m, "/jobs/report", c.opts...), newJob(t, connect(), "/jobs/report", c.opts...)
				began, ended := make(chan struct{}), make(chan error, 1)
				go func() {
					outcome, err := a.Run(ctx, noon, func(inside context.Context) error {
						close(began)
						time.Sleep(work)
						if c.end == nil {
							return nil
						}
						s, err := m.Session(inside)
						if err != nil {
							return err
						}
						return c.end(inside, server, s.ID())
					})
					if outcome != schedule.Ran {
						t.Errorf("the first replica: %v", outcome)
					}
					ended <- err
				}()
				<-began
				start := time.Now()
				outcome, err := b.Run(ctx, noon, func(context.Context) error { return nil })
				if waited := time.Since(start); outcome != c.want || err != nil || (waited-c.waits).Abs() > time.Minute {
					t.Errorf("%v, %v, after %v", outcome, err, waited)
				}
				err = <-ended
				if want := c.end != nil; (err != nil) != want {
					t.Errorf("the first replica: %v", err)
				}
			})
		})
	}
}

// A replica that waits leaves at the end of its context, or of its patience, and a try does not wait.
func TestBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
		a, b := newJob(t, connect(), "/jobs/report"), newJob(t, connect(), "/jobs/report")
		_, err := a.Run(t.Context(), noon, func(ctx context.Context) error {
			n := 0
			if outcome, err := b.TryRun(ctx, later(1), count(&n)); outcome != schedule.Busy || err != nil {
				t.Errorf("TryRun: %v, %v", outcome, err)
			}
			patience := queue.WithMaxWait(ctx, 3*time.Second)
			start := time.Now()
			outcome, err := b.Run(patience, later(1), count(&n))
			wantErr(t, "Run with WithMaxWait", err, queue.ErrMaxWait)
			waited := time.Since(start).Round(time.Second)
			if outcome != schedule.NotRun || waited != 3*time.Second || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, %v, after %v", outcome, err, waited)
			}
			ends, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			outcome, err = b.Run(ends, later(1), count(&n))
			wantErr(t, "Run", err, context.DeadlineExceeded)
			if outcome != schedule.NotRun || n > 0 {
				t.Errorf("%v, called %d times", outcome, n)
			}
			return nil
		})
		must(t, err)
		n := 0
		if outcome, err := b.Run(t.Context(), later(1), count(&n)); outcome != schedule.Ran || err != nil || n != 1 {
			t.Errorf("Run of a free job: %v, %v", outcome, err)
		}
		synctest.Wait()
	})
}

// A job whose caller has gone is recorded all the same: it is done.
func TestDoneAfterCancel(t *testing.T) {
	path := testserver.Path(t)
	j := newJob(t, connect(t), path)
	ctx, cancel := context.WithCancel(patient(t))
	outcome, err := j.Run(ctx, noon, func(context.Context) error { cancel(); return nil })
	if outcome != schedule.Ran || err != nil {
		t.Errorf("Run: %v, %v", outcome, err)
	}
	if last, err := j.Last(patient(t)); err != nil || !last.Done {
		t.Errorf("%+v, %v", last, err)
	}
	n := 0
	outcome, err = j.Run(ctx, later(1), count(&n))
	wantErr(t, "Run", err, context.Canceled)
	if outcome != schedule.NotRun || n > 0 {
		t.Error("a job ran for a caller that had gone")
	}
}
