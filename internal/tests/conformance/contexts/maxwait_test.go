package contexts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/bubble"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const bound = 50 * time.Millisecond

// endless ends a call that should have ended long before.
const endless = 10 * time.Minute

// call is a call that waits for a lock or for a connection.
type call func(ctx context.Context) error

// made is for a constructor or a call that must succeed.
func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// others returns the calls that belong to no kind of lock.
func others(w *bubble.World) map[string]call {
	m := w.Connect()
	lease := func(path string) *queue.Lease {
		return made(made(zklock.New(m, path)).Acquire(w.Context())) // whose token nobody has asked for yet
	}
	multi := made(made(zklock.Multi(made(zklock.New(m, "/multi/a")), made(rwlock.New(m, "/multi/b")))).Acquire(w.Context()))
	single, beside := lease("/single"), lease("/revoked")
	s := made(semaphore.New(m, "/semaphore", 2))
	e := made(election.New(m, "/election"))
	inTerm := make(chan context.Context)
	leader := made(election.New(w.Connect(), "/term"))
	w.HoldRequest(zktest.On(zktest.OpGetData, "/term")) // a leader asks for its token at once
	go func() {
		_ = leader.Run(w.Context(), func(ctx context.Context) error { inTerm <- ctx; return rests(ctx) })
	}()
	term := <-inTerm
	return map[string]call{
		"Token":            func(ctx context.Context) error { _, err := single.Token(ctx); return err },
		"Token of several": func(ctx context.Context) error { _, err := multi.Leases()[1].Token(ctx); return err },
		"Term":             func(context.Context) error { _, err := election.Term(queue.WithMaxWait(term, bound)); return err },
		"Leader":           func(ctx context.Context) error { _, err := e.Leader(ctx); return err },
		"candidates":       func(ctx context.Context) error { _, err := e.Contenders(ctx); return err },
		"above the limit":  func(ctx context.Context) error { _, err := s.AcquireN(ctx, 3); return err },
		"Limit":            func(ctx context.Context) error { _, err := s.Limit(ctx); return err },
		"Resize":           func(ctx context.Context) error { return s.Resize(ctx, 3) },
		"ResetLimit":       s.ResetLimit,
		"Revoke":           func(ctx context.Context) error { return zklock.Revoke(ctx, m, beside.Path()) },
	}
}

// rests is the work of a leader, and of a job.
func rests(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// check makes a call, and compares its error, and how long it has taken.
func check(t *bubble.World, what string, ctx context.Context, c call, want error, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, endless)
	defer cancel()
	began := time.Now()
	err := c(ctx)
	took := time.Since(began)
	// The bound and the end of the context are two things.
	for _, other := range []error{queue.ErrMaxWait, context.DeadlineExceeded} {
		if errors.Is(err, other) != (other == want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	var wait *queue.WaitError
	if want == queue.ErrMaxWait && !errors.As(err, &wait) {
		t.Errorf("%s: no WaitError in %v", what, err)
	}
	if took != after {
		t.Errorf("%s: it took %v, want %v: %v", what, took, after, err)
	}
}

// Calls that belong to no kind of lock, and wait for a connection on behalf of one, fail when they have waited for as
// long as they may: with a bound, with an end of the context that comes before, and without any time at all. Those of all
// kinds are cases of internal/tests/locktest.
func TestMaxWaitWithoutConnection(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		calls := others(w)
		w.Cut()
		defer w.Refuse(false)
		for name, c := range calls {
			check(w, name, queue.WithMaxWait(w.Context(), bound), c, queue.ErrMaxWait, bound)
			if name == "Term" {
				continue // it has the context of its term
			}
			short, cancel := context.WithTimeout(w.Context(), bound)
			check(w, name+" until the deadline", queue.WithMaxWait(short, time.Hour), c, context.DeadlineExceeded, bound)
			cancel()
			last := queue.WithMaxWait(queue.WithMaxWait(w.Context(), time.Hour), bound)
			check(w, name+" with the last bound", last, c, queue.ErrMaxWait, bound)
			check(w, name+" without time", queue.WithMaxWait(w.Context(), 0), c, queue.ErrMaxWait, 0)
			check(w, name+" with less than no time", queue.WithMaxWait(w.Context(), -time.Hour), c, queue.ErrMaxWait, 0)
		}
	})
}

// unbounded fails the test if a bound is that of the work too, or of the calls in it. That it is not for the function of a
// Do is a case of internal/tests/locktest, for all kinds.
func unbounded(w *bubble.World, what string, inside context.Context) {
	w.Helper()
	if d, bounded := queue.MaxWait(inside); bounded {
		w.Errorf("%s: calls wait for %v at most", what, d)
	}
	if end, has := inside.Deadline(); has && time.Until(end) < endless {
		w.Errorf("%s: the work has until %v", what, end)
	}
}

func TestMaxWaitOfLeases(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		ctx, m := queue.WithMaxWait(w.Context(), bound), w.Connect()
		one := made(made(zklock.New(m, "/a")).Acquire(ctx))
		several := made(made(zklock.Multi(made(zklock.New(m, "/b")), made(zklock.New(m, "/c")))).Acquire(ctx))
		for what, of := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"a lease": one.Context, "several leases": several.Context,
		} {
			inside, cancel := of(ctx)
			unbounded(w, what, inside)
			cancel()
		}
	})
}

// A campaign waits for as long as another candidate leads, and an observer for changes, also when the servers are away.
func TestMaxWaitOfCampaign(t *testing.T) {
	bubble.Run(t, func(w *bubble.World) {
		leader, next := made(election.New(w.Connect(), "/e")), made(election.New(w.Connect(), "/e"))
		ctx, resign := context.WithCancel(w.Context())
		first := w.Go(func() error { return leader.Run(ctx, rests) })
		enough := errors.New("enough")
		bounded := queue.WithMaxWait(w.Context(), bound)
		campaign := w.Go(func() error {
			return next.Run(bounded, func(ctx context.Context) error {
				unbounded(w, "a term", ctx)
				return enough
			})
		})
		observer := w.Go(func() error {
			for _, err := range made(election.New(w.Connect(), "/e")).Observe(bounded) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		w.Pass(time.Minute)
		w.Cut()
		w.Pass(5 * time.Second) // which their sessions survive
		w.Refuse(false)
		w.Pass(time.Minute)
		campaign.Waits("another candidate leads")
		observer.Waits("its context lasts")
		resign()
		w.Must(first.Err())
		w.Want("Run", campaign.Err(), enough)
	})
}

// All waits of a Run before its function share the bound: for the record, for the lock, and for the record under the lock.
func TestMaxWaitOfJob(t *testing.T) {
	never := func(context.Context) error { t.Error("called"); return nil }
	tick := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	bubble.Run(t, func(w *bubble.World) {
		first, second := made(schedule.New(w.Connect(), "/job")), made(schedule.New(w.Connect(), "/job"))
		ctx, end := context.WithCancel(w.Context())
		over := w.Go(func() error { _, err := first.Run(ctx, tick, rests); return err })
		w.Delay(bound / 4)
		bounded := queue.WithMaxWait(w.Context(), bound)
		check(w, "Run behind another replica", bounded, func(ctx context.Context) error {
			_, err := second.Run(ctx, tick, never)
			return err
		}, queue.ErrMaxWait, bound)
		w.Delay(0)
		end()
		w.Want("the first Run", over.Err(), context.Canceled)
		w.Pass(time.Second) // until its lock is free
		for name, run := range map[string]func(context.Context, time.Time, func(context.Context) error) (schedule.Outcome, error){
			"Run": second.Run, "TryRun": second.TryRun,
		} {
			writes := w.HoldRequest(zktest.On(zktest.OpMulti, "/job"))
			check(w, name+" whose record is not written", bounded, func(ctx context.Context) error {
				_, err := run(ctx, tick, never)
				return err
			}, queue.ErrMaxWait, bound+time.Second) // the end of a Do waits for the release, for a second at most
			w.Await(writes.Hit())
			writes.Release()
			w.Pass(time.Second)
		}
		outcome, err := second.Run(bounded, tick, func(ctx context.Context) error { unbounded(w, "a job", ctx); return nil })
		if w.Must(err); outcome != schedule.Ran {
			w.Errorf("the job: %v", outcome)
		}
	})
}

func TestMain(m *testing.M) { testserver.Main(m) }
