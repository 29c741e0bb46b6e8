package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Candidates lead in the order in which they came. One whose function has returned, or that has resigned, goes to the end.
func TestOrder(t *testing.T) {
	inBubble(t, func(t *world) {
		all := []*candidate{t.campaign("a"), t.campaign("b"), t.campaign("c")}
		for n := range 2 * len(all) {
			c := all[n%len(all)]
			term := c.leads(t)
			for _, other := range all {
				if other != c && (other.IsLeader() || other.Resign()) {
					t.Errorf("%s leads or has resigned while %s leads", other.id, c.id)
				}
			}
			if n%2 == 0 {
				c.end <- nil
			} else if !c.Resign() || !errors.Is(context.Cause(term), election.ErrResigned) {
				t.Errorf("after Resign the cause of the end is %v", context.Cause(term))
			}
		}
	})
}

// A candidate that was asked to resign while it waited gives the leadership up when it has it, without a term, and keeps
// its later terms.
func TestRevokeWaiter(t *testing.T) {
	inBubble(t, func(t *world) {
		a, b, c := t.campaign("a"), t.campaign("b"), t.campaign("c")
		queue, err := a.Contenders(t.Context())
		must(t, err)
		must(t, zklock.Revoke(t.Context(), t.connect(), queue[1].Path))
		pass(time.Second)
		a.end <- nil
		c.leads(t)
		if len(b.terms) > 0 {
			t.Error("a candidate that was asked to resign leads")
		}
		c.end <- nil
		pass(soon)
		if a.IsLeader() { // it can be behind the other one
			a.end <- nil
		}
		b.leads(t)
	})
}

// A candidate that was asked to resign before its function was called has had no term. When its context ends, Run returns at
// once, although the servers have not confirmed yet that its node is gone.
func TestPassedTermWaitsForNothing(t *testing.T) {
	inBubble(t, func(t *world) {
		leader, c := t.campaign("leader"), t.campaign("candidate")
		queue, err := c.Contenders(t.Context())
		must(t, err)
		must(t, zklock.Revoke(t.Context(), t.connect(), queue[1].Path))
		pass(time.Second)
		held := t.server.HoldReply(zktest.On(zktest.OpDelete, queue[1].Path))
		leader.stop()
		<-held.Hit()
		began := time.Now()
		c.stop()
		must(t, <-c.ended)
		if took := time.Since(began); took > 0 || len(c.terms) > 0 {
			t.Errorf("Run returns %v after its context has ended, with %d terms", took, len(c.terms))
		}
		held.Release()
	})
}

// The context of the leader gives its term, which is the token of its lease, also after the term.
func TestTerm(t *testing.T) {
	inBubble(t, func(t *world) {
		c := t.campaign("a")
		ctx := c.leads(t)
		lease, ok := queue.LeaseFrom(ctx)
		if !ok {
			t.Fatal("no lease")
		}
		token, err := lease.Token(ctx)
		must(t, err)
		inside, cancel := context.WithCancel(ctx)
		if term, err := election.Term(inside); term != token || err != nil {
			t.Errorf("term %d, %v; the token is %d", term, err, token)
		}
		cancel()
		c.stop()
		must(t, <-c.ended)
		if term, err := election.Term(ctx); term != token || err != nil {
			t.Errorf("after the term: %d, %v", term, err)
		}
		_, err = election.Term(context.Background())
		wantErr(t, "Term of another context", err, session.ErrInvalid)
	})
}

// A second Run, and one of no function, fail at once.
func TestRunTwice(t *testing.T) {
	inBubble(t, func(t *world) {
		c := t.campaign("a")
		wantErr(t, "a second Run", c.Run(t.Context(), rests), session.ErrInvalid)
		wantErr(t, "Run of nil", t.election().Run(t.Context(), nil), session.ErrInvalid)
		wantIDs(t, c.Election, "a")
		c.end <- errWork
		wantErr(t, "Run", <-c.ended, errWork)
	})
}

// A leader whose function returns at once does not send requests as fast as it can, also if another candidate does the same.
func TestShortTerms(t *testing.T) {
	for _, candidates := range []int{1, 3} {
		inBubble(t, func(t *world) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error)
			terms := make([]int, candidates)
			for i := range candidates {
				e := t.election()
				go func() {
					ended <- e.Run(ctx, func(context.Context) error {
						if terms[i]++; terms[i] > 1000 {
							return errWork // in virtual time, a loop without a pause would not end
						}
						return nil
					})
				}()
			}
			for range candidates {
				wantErr(t, "Run", <-ended, context.DeadlineExceeded)
			}
			for _, n := range terms {
				if n < 30 || n > 300 {
					t.Errorf("%d terms in a minute", n)
				}
			}
			if n := t.server.Count(zktest.On(zktest.OpCreate, dir)); n > 300*candidates {
				t.Errorf("%d creates in a minute", n)
			}
		})
	}
}

// WithTermEnd is told how each term has ended, and decides whether the candidate campaigns again.
func TestTermEnd(t *testing.T) {
	errEnough := errors.New("enough")
	inBubble(t, func(t *world) {
		var e *election.Election
		ends := []struct {
			lead func(context.Context) error
			want []error
		}{
			{func(context.Context) error { return nil }, nil},
			{func(context.Context) error { return errWork }, []error{errWork}},
			{func(ctx context.Context) error { e.Resign(); <-ctx.Done(); return errWork }, []error{election.ErrResigned, errWork}},
			{func(ctx context.Context) error { e.Resign(); return rests(ctx) }, []error{election.ErrResigned}},
			{func(ctx context.Context) error {
				t.expire(e.Manager())
				return errors.Join(errWork, rests(ctx))
			}, []error{session.ErrLost, errWork}},
			{func(context.Context) error { return errEnough }, []error{errEnough}},
		}
		began, ended := 0, 0
		e = t.election(election.WithTermEnd(func(err error) error {
			if e.IsLeader() {
				t.Error("called while it leads")
			}
			wantErr(t, "end of a term", err, ends[ended].want...)
			if ended++; ended == 1 && err != nil {
				t.Errorf("a function that returns nil ends a term with %v", err)
			}
			if errors.Is(err, errEnough) {
				return errWork
			}
			return nil
		}))
		wantErr(t, "Run", e.Run(t.Context(), func(ctx context.Context) error { began++; return ends[began-1].lead(ctx) }), errWork)
		if began != len(ends) || ended != began {
			t.Errorf("%d terms have begun, and %d have ended", began, ended)
		}
	})
}

// A candidate whose function fails at once rests before it stands again, longer each time, although another candidate leads
// for long in between. After a term that lasted it begins with short rests again.
func TestRest(t *testing.T) {
	const rounds = 30
	for how, opts := range map[string][]election.Option{
		"in one Run": {election.WithTermEnd(func(error) error { return nil })}, "in a Run for each term": nil,
	} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *world) {
				var stood, failed []time.Time // when the candidate began to campaign, and when its terms ended
				m := t.connect()
				m.AddTrace(session.Trace{Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
					stood = append(stood, time.Now())
					return ctx, nil
				}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error)
				healthy := t.election()
				go func() {
					ended <- healthy.Run(ctx, func(ctx context.Context) error {
						select {
						case <-time.After(12 * time.Second):
						case <-ctx.Done():
						}
						return nil
					})
				}()
				pass(time.Second)
				e := t.electionOf(m, opts...)
				for ctx.Err() == nil {
					_ = e.Run(ctx, func(context.Context) error {
						if len(failed) == rounds-1 {
							time.Sleep(11 * time.Second) // it can lead for once
						}
						if failed = append(failed, time.Now()); len(failed) == rounds+2 {
							cancel()
						}
						return errWork
					})
				}
				must(t, <-ended)
				rest := func(i int) time.Duration { return stood[i+1].Sub(failed[i]) }
				longest := time.Duration(0)
				for i := range rounds - 1 {
					if bound := min(timeout/2, 50*time.Millisecond<<min(i, 10)); rest(i) > bound+10*time.Millisecond {
						t.Errorf("rest %d took %v, and should take %v at most", i, rest(i), bound)
					}
					longest = max(longest, rest(i))
				}
				if longest < 2*time.Second {
					t.Errorf("no rest took longer than %v", longest)
				}
				if first := rest(rounds); first > 60*time.Millisecond {
					t.Errorf("after a term that lasted, the first rest took %v", first)
				}
			})
		})
	}
}
