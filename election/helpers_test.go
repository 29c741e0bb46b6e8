package election_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var (
	patient = expect.Patient
	must    = expect.NoError
	wantErr = expect.Match
)

func receive[T any](tb testing.TB, what string, ch <-chan T) T {
	tb.Helper()
	return expect.Receive(tb, what, ch)
}

// connect returns a manager on the shared server. For elections it is another process.
func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...)
}

func newElection(tb testing.TB, m *session.Manager, path string, opts ...election.Option) *election.Election {
	tb.Helper()
	e, err := election.New(m, path, opts...)
	must(tb, err)
	return e
}

// enter makes the node of a candidate that no Election has.
func enter(tb testing.TB, s *session.Session, dir, name, id string) *session.Node {
	tb.Helper()
	node, err := s.Enter(tb.Context(), session.NewNode{Dir: dir, Name: name, Data: []byte(id)})
	must(tb, err)
	return node
}

// candidate is an Election in whose terms the test acts.
type candidate struct {
	*election.Election
	id    string
	terms chan *served // each that begins
	ended chan error   // receives the error of Run
	stop  context.CancelFunc
}

// served is a term of a candidate.
type served struct {
	id     string
	ctx    context.Context
	number int64
	end    chan<- error // the candidate's function returns what the test sends
}

// campaign starts a candidate, which stops at the end of the test.
func campaign(tb testing.TB, m *session.Manager, path, id string, opts ...election.Option) *candidate {
	tb.Helper()
	return campaignTo(tb, make(chan *served), m, path, id, opts...)
}

// campaignTo is campaign with a channel for the terms.
func campaignTo(tb testing.TB, terms chan *served, m *session.Manager, path, id string, opts ...election.Option) *candidate {
	tb.Helper()
	c := &candidate{
		Election: newElection(tb, m, path, append([]election.Option{election.WithID(id)}, opts...)...),
		id:       id,
		terms:    terms,
		ended:    make(chan error, 1),
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.ended <- c.Run(ctx, c.lead)
	}()
	tb.Cleanup(func() {
		cancel()
		receive(tb, "the end of Run of "+id, over)
	})
	return c
}

// lead leads until the test ends the term or its context ends.
func (c *candidate) lead(ctx context.Context) error {
	number, err := election.Term(ctx)
	if err != nil {
		return ctx.Err() // lost already
	}
	end := make(chan error)
	select {
	case c.terms <- &served{c.id, ctx, number, end}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leads waits until a candidate leads. A short session may have been lost by then, on a busy machine.
func (c *candidate) leads(tb testing.TB) *served {
	tb.Helper()
	s := receive(tb, "a term of "+c.id, c.terms)
	if !c.IsLeader() && s.ctx.Err() == nil {
		tb.Errorf("%s: IsLeader is false in its term", c.id)
	}
	return s
}

// over waits until a term has ended, and returns the cause.
func (s *served) over(tb testing.TB) error {
	tb.Helper()
	receive(tb, "the end of the term of "+s.id, s.ctx.Done())
	return context.Cause(s.ctx)
}

// line starts candidates, one behind the other.
func line(tb testing.TB, path string, ids ...string) []*candidate {
	tb.Helper()
	var all []*candidate
	for i, id := range ids {
		all = append(all, campaign(tb, connect(tb), path, id))
		testserver.WaitChildren(tb, path, i+1)
	}
	return all
}

// pass lets time go by in virtual time.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// dir is where the elections of the tests in virtual time are.
const dir = "/election/party"

// inBubble runs f in virtual time, with a server of its own. connect makes a manager, which for elections is
// another process.
func inBubble(t *testing.T, f func(t *testing.T, server *zktest.Server, connect func() *session.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		f(t, server, func() *session.Manager {
			m, err := session.Connect(t.Context(), "zookeeper:2181",
				session.WithDialer(server.Dialer()), session.WithTimeout(10*time.Second),
				session.WithLogger(slog.New(slog.DiscardHandler)))
			must(t, err)
			t.Cleanup(func() { _ = m.Close() })
			return m
		})
	})
}
