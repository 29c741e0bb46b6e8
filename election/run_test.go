package election_test

import (
	"context"
	"errors"
	"runtime"
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
	var r referee
	for range 2 {
		for i, c := range all {
			s := c.leads(t)
			r.enter(t, s)
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

// However the leader's function ends, the leadership is given up.
func TestEndOfFunction(t *testing.T) {
	tests := []struct {
		name  string
		f     func() error
		err   error
		panic any
	}{
		{"error", func() error { return errWork }, errWork, nil},
		{"an error like that of a lost session", func() error { return session.ErrLost }, session.ErrLost, nil},
		{"panic", func() error { panic("boom") }, nil, "boom"},
		{"exit", func() error { runtime.Goexit(); return nil }, nil, nil},
	}
	m := connect(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := testserver.Path(t)
			e := newElection(t, m, dir)
			ended := make(chan any, 1)
			var err error
			for range 2 { // Run can be called again
				var inside context.Context
				go func() {
					defer func() { ended <- recover() }()
					err = e.Run(context.Background(), func(ctx context.Context) error {
						inside = ctx
						return tt.f()
					})
				}()
				if got := receive(t, "the end of Run", ended); got != tt.panic {
					t.Errorf("panic %v, want %v", got, tt.panic)
				}
				if err != tt.err {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if inside.Err() == nil || e.IsLeader() || e.Resign() {
					t.Error("it leads after its function has ended")
				}
				testserver.WaitChildren(t, dir, 0)
			}
		})
	}
}

// When the leadership is lost, the context of the leader ends before another candidate leads. The
// candidate campaigns again, whatever its function returns.
func TestLoss(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, p *zktest.Proxy, m *session.Manager, node string){
		"session": func(t *testing.T, p *zktest.Proxy, m *session.Manager, _ string) {
			must(t, p.Expire(patient(t), testserver.Session(t, m).ID()))
		},
		"node": func(t *testing.T, _ *zktest.Proxy, _ *session.Manager, node string) { testserver.Delete(t, node) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			m := testserver.Connect(t, proxy.Addr())
			a := campaign(t, m, dir, "a")
			first := a.leads(t)
			b := campaign(t, connect(t), dir, "b")
			testserver.WaitChildren(t, dir, 2)
			leader, err := b.Leader(patient(t))
			must(t, err)
			lose(t, proxy, m, leader.Path)
			wantErr(t, "cause", first.over(t), session.ErrLost)
			if a.IsLeader() {
				t.Error("IsLeader after the loss")
			}
			second := b.leads(t)
			if name == "session" && first.ctx.Err() == nil {
				t.Error("two leaders")
			}
			testserver.WaitChildren(t, dir, 2)
			second.end <- nil
			if again := a.leads(t); again.number <= second.number || second.number <= first.number {
				t.Errorf("terms %d, %d, %d", first.number, second.number, again.number)
			}
		})
	}
}

// The end of Run's context ends the campaign or the term, with the error of the context. An error of the
// function is reported too.
func TestContextOfRun(t *testing.T) {
	dir := testserver.Path(t)
	all := line(t, dir, "a", "b")
	leading := all[0].leads(t)
	all[1].stop()
	wantErr(t, "Run of a candidate that waits", receive(t, "the end of Run", all[1].ended), context.Canceled)
	testserver.WaitChildren(t, dir, 1)
	all[0].stop()
	wantErr(t, "cause", leading.over(t), context.Canceled)
	wantErr(t, "Run of the leader", receive(t, "the end of Run", all[0].ended), context.Canceled)
	testserver.WaitChildren(t, dir, 0)

	e := newElection(t, connect(t), dir)
	ctx, cancel := context.WithTimeout(patient(t), time.Minute)
	err := e.Run(ctx, func(context.Context) error { cancel(); return errWork })
	wantErr(t, "Run", err, context.Canceled, errWork)
	err = e.Run(ctx, func(context.Context) error { t.Error("called"); return nil })
	wantErr(t, "Run of an ended context", err, context.Canceled)
	testserver.WaitChildren(t, dir, 0)
}

// The end of the manager ends Run.
func TestClosedManager(t *testing.T) {
	dir := testserver.Path(t)
	m := connect(t)
	leader := campaign(t, m, dir, "leader")
	s := leader.leads(t)
	waiter := campaign(t, m, dir, "waiter")
	testserver.WaitChildren(t, dir, 2)
	must(t, m.Close())
	wantErr(t, "cause", s.over(t), session.ErrClosed)
	for _, c := range []*candidate{leader, waiter} {
		wantErr(t, "Run of "+c.id, receive(t, "the end of Run", c.ended), session.ErrClosed)
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
