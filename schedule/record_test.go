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
	"github.com/turnstile-go/turnstile/zktest"
)

// A record that cannot be understood is an error, and nothing is run until it is deleted.
func TestBadRecord(t *testing.T) {
	inBubble(t, func(t *world) {
		j, s := t.job(), t.session()
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
			t.write(data)
			_, lastErr := j.Last(t.Context())
			_, runErr := j.Run(t.Context(), later(1), t.at(1))
			_, tryErr := j.TryRun(t.Context(), later(1), t.at(1))
			for _, err := range []error{lastErr, runErr, tryErr} {
				if !errors.Is(err, schedule.ErrRecord) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v", what, err)
				}
			}
			t.wantRan()
			must(t, s.Delete(t.Context(), path+"/last", -1)) // as the documentation says
			t.is(schedule.Ran)(j.Run(t.Context(), noon, t.at(0)))
			t.wantRan(0)
		}
	})
}

// Counts that are as high as they may be do not grow, so that the record can be read on. What a later version adds does no
// harm, nor does another time zone.
func TestHighestCounts(t *testing.T) {
	inBubble(t, func(t *world) {
		j := t.job()
		t.write(`{"version":1,"tick":"1999-11-26T13:00:00+01:00","tries":1000000000,"done":false,"completed":1000000000,"host":"a"}`)
		for n, tries := range []int{1e9, 1} {
			t.is(schedule.Ran)(j.Run(t.Context(), later(n), t.at(n)))
			t.wantLast(j, schedule.Record{Tick: later(n), Tries: tries, Done: true, Completed: 1e9})
		}
	})
}

// A replica whose node was deleted while the job ran has lost the lock, and cannot write that the job is done, even if it
// does not know that yet.
func TestRecordIsGuarded(t *testing.T) {
	inBubble(t, func(t *world) {
		j, s := t.job(), t.session()
		t.is(schedule.Ran, session.ErrLost)(j.Run(t.Context(), noon, func(ctx context.Context) error {
			names, _, err := s.Children(ctx, path+"/lock")
			must(t, err)
			t.server.Delay(time.Second) // the news takes longer than the job
			return t.server.DeleteNode(path + "/lock/" + names[0])
		}))
		t.server.Delay(0)
		t.wantLast(j, schedule.Record{Tick: noon, Tries: 1})
		t.is(schedule.Ran)(t.job().Run(t.Context(), noon, t.at(0)))
	})
}

// A replica whose look at the record was old when it came does not run the job: its write fails, and it looks again. A
// server that is behind can give such an answer.
func TestOldLook(t *testing.T) {
	inBubble(t, func(t *world) {
		release, j, over := t.hold(), t.job(), make(chan struct{})
		go func() {
			defer close(over)
			t.is(schedule.Done)(j.Run(t.Context(), noon, t.at(0)))
		}()
		time.Sleep(time.Second) // it waits
		look := t.server.HoldReply(zktest.On(zktest.OpGetData, path+"/last"))
		release()
		<-look.Hit()
		t.write(`{"version":1,"tick":"1999-11-26T12:00:00Z","tries":1,"done":true}`)
		look.Release()
		<-over
		t.wantRan()
	})
}

// A replica whose tick another one runs between its first look at the record and its lock looks again, under the lock.
func TestDoneMeanwhile(t *testing.T) {
	for _, run := range []func(*schedule.Job, context.Context, time.Time, func(context.Context) error) (schedule.Outcome, error){
		(*schedule.Job).Run, (*schedule.Job).TryRun,
	} {
		inBubble(t, func(t *world) {
			other := t.job()
			before := func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
				t.is(schedule.Ran)(other.Run(t.Context(), noon, t.at(0)))
				return ctx, func(session.AcquireResult) {}
			}
			late := t.jobOf(t.connect(session.WithTrace(session.Trace{Acquire: before})))
			t.is(schedule.Done)(run(late, t.Context(), noon, t.at(0)))
			t.wantRan(0)
		})
	}
}

// Whichever request of a Run gets no reply, the job runs once, and the record says so.
func TestLostReplies(t *testing.T) {
	for when, arm := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
		"before it": (*zktest.Server).CutBefore, "after it": (*zktest.Server).CutAfterCommit,
	} {
		for _, op := range []zktest.Op{
			zktest.OpGetData, zktest.OpCreateContainer, zktest.OpCreate, zktest.OpGetChildren2, zktest.OpMulti, zktest.OpDelete,
		} {
			for _, opts := range [][]schedule.Option{nil, {once}} {
				inBubble(t, func(t *world) {
					j, want := t.job(opts...), schedule.Record{Tick: noon, Tries: 1, Done: true, Completed: 1}
					if op == zktest.OpDelete {
						t.is(schedule.Ran)(j.Run(t.Context(), later(-1), t.at(-1))) // makes a record
						want.Completed++
						t.wantRan(-1)
					}
					fault := arm(t.server, zktest.Any(op))
					t.is(schedule.Ran)(j.Run(t.Context(), noon, func(ctx context.Context) error {
						arm(t.server, zktest.Any(zktest.OpMulti)) // the second one
						return t.work(ctx, noon)
					}))
					time.Sleep(time.Second) // Unlock does not wait for a connection
					select {
					case <-fault.Hit():
					default:
						t.Errorf("no request %v", op)
					}
					t.wantLast(j, want)
					t.is(schedule.Done)(t.job(opts...).Run(t.Context(), noon, t.at(0)))
					t.wantRan(0)
					if t.Failed() {
						t.Fatalf("the connection was cut %s: %v", when, op)
					}
				})
			}
		}
	}
}

// A caller that gives up while the record is in doubt is told both.
func TestDoubtAndCancel(t *testing.T) {
	inBubble(t, func(t *world) {
		ctx, cancel := context.WithCancel(t.Context())
		j := t.jobOf(t.connect(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
				return ctx, func(err error) {
					if errors.Is(err, zk.ErrConnectionClosed) {
						cancel()
					}
				}
			},
		})))
		t.is(schedule.Ran)(j.Run(ctx, later(-1), t.at(-1))) // makes a record
		t.server.CutBefore(zktest.On(zktest.OpMulti, path))
		outcome, err := j.Run(ctx, noon, t.at(0))
		if outcome != schedule.NotRun || !errors.Is(err, context.Canceled) || !errors.Is(err, session.ErrUncertain) {
			t.Errorf("%v, %v", outcome, err)
		}
		t.wantRan(-1)
	})
}

// A record that an operator deletes while the job runs stays away, so the tick is open again.
func TestRecordDeletedMeanwhile(t *testing.T) {
	inBubble(t, func(t *world) {
		j, s := t.job(), t.session()
		outcome, err := j.Run(t.Context(), noon, func(ctx context.Context) error { return s.Delete(ctx, path+"/last", -1) })
		if t.is(schedule.Ran, zk.ErrNoNode)(outcome, err); errors.Is(err, session.ErrLost) {
			t.Errorf("the lock is not lost: %v", err)
		}
		t.is(schedule.Ran)(j.Run(t.Context(), noon, t.at(0)))
	})
}

// A replica that may read the record and not write it runs nothing: it finds out before the job.
func TestNoRightToWrite(t *testing.T) {
	inBubble(t, func(t *world) {
		acl := append(zk.WorldACL(zk.PermRead), zk.DigestACL(zk.PermAll, "a", "b")...)
		owner := testserver.Session(t, t.connect(session.WithAuth("digest", []byte("a:b")), session.WithACL(acl...)))
		_, err := t.session().Create(t.Context(), path, nil, session.Persistent)
		must(t, err)
		_, err = owner.Create(t.Context(), path+"/last", nil, session.Persistent)
		must(t, err)
		t.is(schedule.NotRun, zk.ErrNoAuth)(t.job().Run(t.Context(), later(1), t.at(1)))
		t.wantRan()
	})
}
