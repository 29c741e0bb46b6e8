package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

var errWork = errors.New("the work went wrong")

// Candidates lead in the order in which they came. One that has led goes to the end.
func TestOrder(t *testing.T) {
	dir := testserver.Path(t)
	all := line(t, dir, "a", "b", "c")
	for range 2 {
		for i, c := range all {
			s := c.leads(t)
			for j, other := range all {
				if other.IsLeader() != (i == j) {
					t.Errorf("%s leads: IsLeader of %s is %v", c.id, other.id, other.IsLeader())
				}
			}
			testserver.WaitChildren(t, dir, len(all)) // the one before is at the end of the queue
			s.end <- nil
		}
	}
}

// The context of the leader gives its term, which is the token of its lease.
func TestTerm(t *testing.T) {
	c := campaign(t, connect(t), testserver.Path(t), "a")
	s := c.leads(t)
	lease, ok := queue.LeaseFrom(s.ctx)
	if !ok {
		t.Fatal("no lease")
	}
	token, err := lease.Token(s.ctx)
	must(t, err)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if term, err := election.Term(ctx); term != token || err != nil {
		t.Errorf("term %d, %v; the token is %d", term, err, token)
	}
	_, err = election.Term(context.Background())
	wantErr(t, "Term of another context", err, session.ErrInvalid)
	s.end <- nil
	_, err = election.Term(s.ctx)
	if err != nil { // it is known, also after the term
		t.Error(err)
	}
}

// A leader whose function returns at once does not send requests as fast as it can, also if another
// candidate does the same.
func TestShortTerms(t *testing.T) {
	for _, candidates := range []int{1, 3} {
		inBubble(t, func(t *testing.T, server *zktest.Server, connect func() *session.Manager) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error)
			terms := make([]int, candidates)
			for i := range candidates {
				e := newElection(t, connect(), "/election")
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
			if n := server.Count(zktest.On(zktest.OpCreate, "/election/")); n > 300*candidates {
				t.Errorf("%d creates in a minute", n)
			}
		})
	}
}

// WithTermEnd is told how each term has ended, and decides whether the candidate campaigns again.
func TestTermEnd(t *testing.T) {
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr())
	told := make(chan error, 1)
	var e *election.Election
	e = newElection(t, m, testserver.Path(t), election.WithTermEnd(func(err error) error {
		if e.IsLeader() {
			t.Error("called while it leads")
		}
		told <- err
		if errors.Is(err, errEnough) {
			return errWork
		}
		return nil
	}))
	calls := 0
	ways := []func(context.Context) error{
		func(context.Context) error { return nil },
		func(context.Context) error { return errWork },
		func(ctx context.Context) error { e.Resign(); <-ctx.Done(); return errWork },
		func(ctx context.Context) error { e.Resign(); <-ctx.Done(); return ctx.Err() },
		func(ctx context.Context) error {
			must(t, proxy.Expire(context.Background(), testserver.Session(t, m).ID()))
			<-ctx.Done()
			return errors.Join(errWork, ctx.Err())
		},
		func(context.Context) error { return errEnough },
	}
	wants := [][]error{{nil}, {errWork}, {election.ErrResigned, errWork}, {election.ErrResigned}, {session.ErrLost, errWork}, {errEnough}}
	err := e.Run(patient(t), func(ctx context.Context) error {
		if calls > 0 {
			wantErr(t, "end of a term", receive(t, "the call", told), wants[calls-1]...)
		}
		calls++
		return ways[calls-1](ctx)
	})
	wantErr(t, "Run", err, errWork)
	wantErr(t, "end of the last term", receive(t, "the call", told), errEnough)
	if calls != len(ways) {
		t.Errorf("%d terms", calls)
	}
}

var errEnough = errors.New("enough")

// A second Run, and one of no function, fail at once.
func TestRunTwice(t *testing.T) {
	dir := testserver.Path(t)
	c := campaign(t, connect(t), dir, "a")
	s := c.leads(t)
	wantErr(t, "a second Run", c.Run(patient(t), func(context.Context) error { return nil }), session.ErrInvalid)
	wantErr(t, "Run of nil", newElection(t, connect(t), dir).Run(patient(t), nil), session.ErrInvalid)
	testserver.WaitChildren(t, dir, 1)
	s.end <- errWork
	wantErr(t, "Run", receive(t, "the end of Run", c.ended), errWork)
}
