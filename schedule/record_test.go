package schedule_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A record that cannot be understood is an error, and nothing is run.
func TestBadRecord(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	s := testserver.Session(t, m)
	for what, data := range map[string]string{
		"no JSON":           "1999-11-26T12:00:00Z",
		"another JSON":      `["a"]`,
		"no version":        `{"tick":"1999-11-26T12:00:00Z","tries":1,"done":true}`,
		"a later version":   `{"version":2,"ticks":["1999-11-26T12:00:00Z"]}`,
		"no tick":           `{"version":1,"tries":1}`,
		"a tick of no date": `{"version":1,"tick":"today","tries":1}`,
		"no tries":          `{"version":1,"tick":"1999-11-26T12:00:00Z"}`,
		"the most tries":    `{"version":1,"tick":"1999-11-26T12:00:00Z","tries":9223372036854775807,"done":false}`,
		"too many tries":    `{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1000000001,"done":false}`,
		"too many done":     `{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":1000000001}`,
		"fewer than none":   `{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true,"completed":-1}`,
	} {
		path := testserver.Path(t)
		j := newJob(t, m, path)
		n := 0
		_, err := j.Run(ctx, noon, count(&n))
		must(t, err)
		_, err = s.Set(ctx, path+"/last", []byte(data), -1)
		must(t, err)
		_, lastErr := j.Last(ctx)
		_, runErr := j.Run(ctx, later(1), count(&n))
		_, tryErr := j.TryRun(ctx, later(1), count(&n))
		for _, err := range []error{lastErr, runErr, tryErr} {
			wantErr(t, what, err, schedule.ErrRecord)
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: ran", what)
		}
		must(t, s.Delete(ctx, path+"/last", -1)) // as the documentation says
		if outcome, err := j.Run(ctx, noon, count(&n)); outcome != schedule.Ran || err != nil {
			t.Errorf("%s: after the delete: %v, %v", what, outcome, err)
		}
	}
}

// Counts that are as high as they may be do not grow, so that the record can be read on.
func TestHighestCounts(t *testing.T) {
	ctx, path := patient(t), testserver.Path(t)
	m := connect(t)
	j, n := newJob(t, m, path), 0
	_, err := j.Run(ctx, noon, count(&n))
	must(t, err)
	// What a later version adds does no harm, nor does another time zone.
	record := `{"version":1,"tick":"1999-11-26T13:00:00+01:00","tries":1000000000,"done":false,"completed":1000000000,"host":"a"}`
	_, err = testserver.Session(t, m).Set(ctx, path+"/last", []byte(record), -1)
	must(t, err)
	for _, want := range []int{1e9, 1} {
		outcome, err := j.Run(ctx, later(n-1), count(&n))
		if outcome != schedule.Ran || err != nil {
			t.Error(outcome, err)
		}
		if last, err := j.Last(ctx); err != nil || !last.Done || last.Tries != want || last.Completed != 1e9 {
			t.Errorf("%+v, %v", last, err)
		}
	}
}

// Last makes nothing, and says by a zero tick that nothing has run.
func TestLastOfNothing(t *testing.T) {
	ctx, path := patient(t), testserver.Path(t)+"/none"
	m := connect(t)
	if last, err := newJob(t, m, path).Last(ctx); err != nil || last != (schedule.Record{}) {
		t.Errorf("%+v, %v", last, err)
	}
	if stat, err := testserver.Session(t, m).Exists(ctx, path); stat != nil || err != nil {
		t.Errorf("Last has made a node: %v, %v", stat, err)
	}
}

// A replica whose node was deleted while the job ran has lost the lock, and cannot write that the job is
// done, even if it does not know that yet.
func TestRecordIsGuarded(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
		ctx := t.Context()
		m := connect()
		j := newJob(t, m, "/jobs/report")
		_, err := j.Run(ctx, noon, func(ctx context.Context) error {
			s, err := m.Session(ctx)
			must(t, err)
			names, _, err := s.Children(ctx, "/jobs/report/lock")
			must(t, err)
			server.Delay(time.Second) // the news takes longer than the job
			return server.DeleteNode("/jobs/report/lock/" + names[0])
		})
		wantErr(t, "Run", err, session.ErrLost)
		server.Delay(0)
		if last, err := j.Last(ctx); err != nil || last.Done || last.Tries != 1 {
			t.Errorf("%+v, %v", last, err)
		}
		n := 0
		if outcome, err := newJob(t, connect(), "/jobs/report").Run(ctx, noon, count(&n)); outcome != schedule.Ran || err != nil {
			t.Errorf("the next Run: %v, %v", outcome, err)
		}
	})
}

// A replica whose look at the record was old when it came does not run the job: its write fails, and it looks
// again. A server that is behind can give such an answer.
func TestOldLook(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
		ctx := t.Context()
		gate, err := zklock.New(connect(), "/jobs/report/lock")
		must(t, err)
		must(t, gate.Lock(ctx))
		j, n := newJob(t, connect(), "/jobs/report"), 0
		over := make(chan error)
		go func() {
			outcome, err := j.Run(ctx, noon, count(&n))
			if outcome != schedule.Done {
				t.Error(outcome)
			}
			over <- err
		}()
		time.Sleep(time.Second) // it waits
		look := server.HoldReply(zktest.On(zktest.OpGetData, "/jobs/report/last"))
		must(t, gate.Unlock())
		<-look.Hit()
		s, err := gate.Manager().Session(ctx)
		must(t, err)
		_, err = s.Set(ctx, "/jobs/report/last", []byte(`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true}`), -1)
		must(t, err)
		look.Release()
		must(t, <-over)
		if n > 0 {
			t.Error("the job was called")
		}
	})
}

// A replica whose tick another one runs between its first look at the record and its lock looks again, under the lock.
func TestDoneMeanwhile(t *testing.T) {
	for what, run := range map[string]func(*schedule.Job, context.Context, time.Time, func(context.Context) error) (schedule.Outcome, error){
		"Run": (*schedule.Job).Run, "TryRun": (*schedule.Job).TryRun,
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *zktest.Server, connect connector) {
				other, n := newJob(t, connect(), "/jobs/report"), 0
				before := func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					outcome, err := other.Run(t.Context(), noon, count(&n))
					must(t, err)
					if outcome != schedule.Ran {
						t.Errorf("the other one: %v", outcome)
					}
					return ctx, func(session.AcquireResult) {}
				}
				late := newJob(t, connect(session.WithTrace(session.Trace{Acquire: before})), "/jobs/report")
				if outcome, err := run(late, t.Context(), noon, count(&n)); outcome != schedule.Done || err != nil || n != 1 {
					t.Errorf("%v, %v; the job was called %d times", outcome, err, n)
				}
			})
		})
	}
}

// Whichever request of a Run gets no reply, the job runs once, and the record says so.
func TestLostReplies(t *testing.T) {
	ops := []zktest.Op{
		zktest.OpGetData, zktest.OpCreateContainer, zktest.OpCreate,
		zktest.OpGetChildren2, zktest.OpMulti, zktest.OpDelete,
	}
	for when, arm := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
		"before it": (*zktest.Server).CutBefore, "after it": (*zktest.Server).CutAfterCommit,
	} {
		for _, op := range ops {
			for _, opts := range [][]schedule.Option{nil, {schedule.WithMaxTries(1)}} {
				inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
					ctx := t.Context()
					j := newJob(t, connect(), "/jobs/report", opts...)
					if op == zktest.OpDelete {
						_, err := j.Run(ctx, noon.Add(-time.Hour), func(context.Context) error { return nil }) // makes a record
						must(t, err)
					}
					fault := arm(server, zktest.Any(op))
					n := 0
					outcome, err := j.Run(ctx, noon, func(context.Context) error {
						n++
						arm(server, zktest.Any(zktest.OpMulti)) // the second one
						return nil
					})
					if outcome != schedule.Ran || err != nil || n != 1 {
						t.Errorf("cut %s, %v: %v, called %d times, %v", when, op, outcome, n, err)
					}
					time.Sleep(time.Second) // Unlock does not wait for a connection
					select {
					case <-fault.Hit():
					default:
						t.Errorf("no request %v", op)
					}
					if last, err := j.Last(ctx); err != nil || !last.Done || last.Tries != 1 {
						t.Errorf("cut %s, %v: %+v, %v", when, op, last, err)
					}
					if outcome, err := newJob(t, connect(), "/jobs/report", opts...).Run(ctx, noon, count(&n)); outcome != schedule.Done || err != nil {
						t.Errorf("cut %s, %v: another replica: %v, %v", when, op, outcome, err)
					}
				})
			}
		}
	}
}

// A record that an operator deletes while the job runs stays away, so the tick is open again.
func TestRecordDeletedMeanwhile(t *testing.T) {
	ctx, path := patient(t), testserver.Path(t)
	m := connect(t)
	j := newJob(t, m, path)
	outcome, err := j.Run(ctx, noon, func(ctx context.Context) error {
		return testserver.Session(t, m).Delete(ctx, path+"/last", -1)
	})
	wantErr(t, "Run", err, zk.ErrNoNode)
	if outcome != schedule.Ran {
		t.Error(outcome)
	}
	if errors.Is(err, session.ErrLost) {
		t.Errorf("the lock is not lost: %v", err)
	}
	n := 0
	if outcome, err := j.Run(ctx, noon, count(&n)); outcome != schedule.Ran || err != nil {
		t.Errorf("the next Run: %v, %v", outcome, err)
	}
}

// A replica that may read the record and not write it runs nothing: it finds out before the job.
func TestNoRightToWrite(t *testing.T) {
	ctx, path := patient(t), testserver.Path(t)
	m := connect(t)
	j := newJob(t, m, path)
	n := 0
	_, err := j.Run(ctx, noon, count(&n))
	must(t, err)
	_, err = testserver.Admin(t).SetACL(path+"/last", zk.WorldACL(zk.PermRead), -1)
	must(t, err)
	outcome, err := j.Run(ctx, later(1), count(&n))
	wantErr(t, "Run", err, zk.ErrNoAuth)
	if outcome != schedule.NotRun || n != 1 {
		t.Errorf("%v, called %d times", outcome, n)
	}
	must(t, testserver.Session(t, m).Delete(ctx, path+"/last", -1))
}
