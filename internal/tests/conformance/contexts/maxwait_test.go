package contexts

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
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

// others returns the calls that belong to no kind of lock.
func (w *world) others() map[string]call {
	t, m := w.t, w.connect()
	lease := func(path string) *queue.Lease {
		l, err := made[*zklock.Mutex](t)(zklock.New(m, path)).Acquire(t.Context())
		must(t, err)
		return l // whose token nobody has asked for yet
	}
	multi, err := made[*zklock.MultiLock](t)(multi(m, "/others/multi")).Acquire(t.Context())
	must(t, err)
	single, beside := lease("/others/single"), lease("/others/revoked")
	s := made[*semaphore.Semaphore](t)(semaphore.New(m, "/others/semaphore", 2))
	e := made[*election.Election](t)(election.New(m, "/others/election"))
	inTerm := make(chan context.Context)
	leader := made[*election.Election](t)(election.New(w.connect(), "/others/term"))
	w.server.HoldRequest(zktest.On(zktest.OpGetData, "/others/term")) // a leader asks for its token at once
	go func() {
		_ = leader.Run(t.Context(), func(ctx context.Context) error {
			inTerm <- ctx
			<-ctx.Done()
			return ctx.Err()
		})
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

// check makes a call, and compares its error, and how long it has taken.
func check(t *testing.T, what string, ctx context.Context, c call, want error, after time.Duration) {
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

// checkAll makes calls with a bound, with an end of the context that comes before, and without any time at all.
func checkAll(t *testing.T, calls map[string]call) {
	t.Helper()
	for name, c := range calls {
		check(t, name, queue.WithMaxWait(t.Context(), bound), c, queue.ErrMaxWait, bound)
		if name == "Term" {
			continue // it has the context of its term
		}
		short, cancel := context.WithTimeout(t.Context(), bound)
		check(t, name+" until the deadline", queue.WithMaxWait(short, time.Hour), c, context.DeadlineExceeded, bound)
		cancel()
		check(t, name+" with the last bound", queue.WithMaxWait(queue.WithMaxWait(t.Context(), time.Hour), bound), c, queue.ErrMaxWait, bound)
		check(t, name+" without time", queue.WithMaxWait(t.Context(), 0), c, queue.ErrMaxWait, 0)
		check(t, name+" with less than no time", queue.WithMaxWait(t.Context(), -time.Hour), c, queue.ErrMaxWait, 0)
	}
}

// Calls that belong to no kind of lock, and wait for a connection on behalf of one, fail when they have waited for as
// long as they may. Those of all kinds are cases of internal/tests/locktest.
func TestMaxWaitWithoutConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		calls := w.others()
		heal := w.cut()
		defer heal()
		checkAll(t, calls)
	})
}

// behind returns a call of a lock that is free a minute from now.
func (w *world) behind() call {
	holder := made[*zklock.Mutex](w.t)(zklock.New(w.connect(), "/inner"))
	l := made[*zklock.Mutex](w.t)(zklock.New(w.connect(), "/inner"))
	must(w.t, holder.Lock(w.t.Context()))
	time.AfterFunc(time.Minute, func() { must(w.t, holder.Unlock()) })
	return func(ctx context.Context) error {
		if end, has := ctx.Deadline(); has && time.Until(end) < 2*time.Minute {
			return errors.New("the work has a deadline")
		}
		if err := l.Lock(ctx); err != nil {
			return err
		}
		return l.Unlock()
	}
}

// The bound is that of the wait, and not that of the work, nor of the calls in it.
func TestMaxWaitIsNotInherited(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				l := made[lock](t)(kind(w.connect(), "/lock"))
				ctx := queue.WithMaxWait(t.Context(), bound)
				check(t, "Do", ctx, func(ctx context.Context) error { return l.Do(ctx, w.behind()) }, nil, time.Minute)
				check(t, "TryDo", ctx, func(ctx context.Context) error {
					ran, err := l.TryDo(ctx, w.behind())
					if !ran {
						t.Error("not called")
					}
					return err
				}, nil, time.Minute)
				var lease interface {
					Context(context.Context) (context.Context, context.CancelFunc)
				}
				var err error
				switch l := l.(type) {
				case leaser:
					lease, err = l.Acquire(ctx)
				case *zklock.MultiLock:
					lease, err = l.Acquire(ctx)
				default:
					return
				}
				must(t, err)
				inside, cancel := lease.Context(ctx)
				defer cancel()
				check(t, "Context of a lease", inside, w.behind(), nil, time.Minute)
			})
		})
	}
}

// A campaign waits for as long as another candidate leads, also when the servers are away, and so does its term.
func TestMaxWaitOfCampaign(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		leader := made[*election.Election](t)(election.New(w.connect(), "/e"))
		next := made[*election.Election](t)(election.New(w.connect(), "/e"))
		ctx, resign := context.WithCancel(t.Context())
		var ended, led error
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = leader.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}()
		synctest.Wait()
		enough := errors.New("enough")
		work := w.behind()
		done := make(chan struct{})
		go func() {
			defer close(done)
			ended = next.Run(queue.WithMaxWait(t.Context(), bound), func(ctx context.Context) error {
				led = work(ctx)
				return enough
			})
		}()
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		heal := w.cut()
		time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble: which their sessions survive
		heal()
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		select {
		case <-done:
			t.Fatalf("the campaign has ended: %v", ended)
		default:
		}
		resign()
		<-over
		<-done
		wantErr(t, "Run", ended, enough)
		must(t, led)
	})
}

// An observer of an election waits for changes for as long as its context lasts.
func TestMaxWaitOfObserver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		leads := make(chan struct{})
		e := made[*election.Election](t)(election.New(w.connect(), "/e"))
		observer := made[*election.Election](t)(election.New(w.connect(), "/e"))
		go func() {
			time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
			_ = e.Run(t.Context(), func(ctx context.Context) error { close(leads); <-ctx.Done(); return ctx.Err() })
		}()
		for leader, err := range observer.Observe(queue.WithMaxWait(t.Context(), bound)) {
			switch {
			case errors.Is(err, election.ErrNoLeader):
			case err != nil:
				t.Fatal(err)
			default:
				<-leads
				if !leader.Holder {
					t.Errorf("%+v", leader)
				}
				return
			}
		}
	})
}

// All waits of a Run before its function share the bound: for the record, for the lock, and for the record under the lock.
func TestMaxWaitOfJob(t *testing.T) {
	never := func(context.Context) error { t.Error("called"); return nil }
	tick := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	inBubble(t, func(t *testing.T, w *world) {
		first := made[*schedule.Job](t)(schedule.New(w.connect(), "/job"))
		second := made[*schedule.Job](t)(schedule.New(w.connect(), "/job"))
		ctx, end := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = first.Run(ctx, tick, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}()
		synctest.Wait()
		w.server.Delay(bound / 4)
		check(t, "Run behind another replica", queue.WithMaxWait(t.Context(), bound), func(ctx context.Context) error {
			_, err := second.Run(ctx, tick, never)
			return err
		}, queue.ErrMaxWait, bound)
		w.server.Delay(0)
		end()
		<-over
		for name, run := range map[string]func(context.Context, time.Time, func(context.Context) error) (schedule.Outcome, error){
			"Run": second.Run, "TryRun": second.TryRun,
		} {
			writes := w.server.HoldRequest(zktest.On(zktest.OpMulti, "/job"))
			check(t, name+" whose record is not written", queue.WithMaxWait(t.Context(), bound), func(ctx context.Context) error {
				_, err := run(ctx, tick, never)
				return err
			}, queue.ErrMaxWait, bound+time.Second) // the end of a Do waits for the release, for a second at most
			expect.Receive(t, "the write of the record", writes.Hit())
			writes.Release()
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		}
		ran := 0
		_, err := second.Run(queue.WithMaxWait(t.Context(), bound), tick, func(context.Context) error { ran++; return nil })
		must(t, err)
		if ran != 1 {
			t.Errorf("the job was run %d times", ran)
		}
	})
}
