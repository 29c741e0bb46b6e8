package election_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
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
	must    = expect.NoError
	wantErr = expect.Match
)

const (
	dir     = "/election/party"
	timeout = 10 * time.Second // of the sessions
	// soon is more than a hand-over takes, with the pause that short terms have. It is less than a session timeout, after
	// which candidates and observers look again by themselves.
	soon = 3 * time.Second
)

var errWork = errors.New("the work went wrong")

// world is a server of its own in virtual time.
type world struct {
	*testing.T
	server *zktest.Server
	dialer func(ctx context.Context, network, addr string) (net.Conn, error) // of later managers
}

func inBubble(t *testing.T, f func(t *world), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, append(opts, zktest.ContainerCheck(24*time.Hour))...)
		f(&world{t, server, server.Dialer()})
	})
}

// connect returns a manager, which for elections is another process.
func (t *world) connect(opts ...session.Option) *session.Manager {
	t.Helper()
	m, err := session.Connect(t.Context(), t.server.Hosts(), append([]session.Option{
		session.WithDialer(t.dialer), session.WithTimeout(timeout), session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// session returns a session in which no candidate is.
func (t *world) session() *session.Session { return testserver.Session(t, t.connect()) }

// election returns an Election in a process of its own.
func (t *world) election(opts ...election.Option) *election.Election {
	t.Helper()
	return t.electionOf(t.connect(), opts...)
}

func (t *world) electionOf(m *session.Manager, opts ...election.Option) *election.Election {
	t.Helper()
	e, err := election.New(m, dir, opts...)
	must(t, err)
	return e
}

// enter makes the node of a candidate that no Election has.
func (t *world) enter(s *session.Session, name, id string) *session.Node {
	t.Helper()
	node, err := s.Enter(t.Context(), session.NewNode{Dir: dir, Name: name, Data: []byte(id)})
	must(t, err)
	return node
}

func (t *world) expire(m *session.Manager) {
	t.Helper()
	must(t, t.server.Expire(t.Context(), testserver.Session(t, m).ID()))
}

// rests leads until its context ends.
func rests(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// candidate is an Election whose terms the test ends. Read its fields after a pass.
type candidate struct {
	*election.Election
	id    string
	terms []context.Context // that have begun
	end   chan error        // the leader's function returns what the test sends
	stop  context.CancelFunc
	ended chan error // receives the error of Run
}

// campaign starts a candidate in a process of its own, and returns when it has its place.
func (t *world) campaign(id string, opts ...election.Option) *candidate {
	t.Helper()
	c := &candidate{
		Election: t.election(append(opts, election.WithID(id))...), id: id, end: make(chan error), ended: make(chan error, 1),
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(t.Context())
	go func() {
		c.ended <- c.Run(ctx, func(ctx context.Context) error {
			c.terms = append(c.terms, ctx)
			select {
			case err := <-c.end:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	pass(soon)
	return c
}

// leads returns the context of a candidate that leads.
func (c *candidate) leads(tb testing.TB) context.Context {
	tb.Helper()
	pass(soon)
	if !c.IsLeader() || len(c.terms) == 0 || c.terms[len(c.terms)-1].Err() != nil {
		tb.Fatalf("%s does not lead, in term %d", c.id, len(c.terms))
	}
	return c.terms[len(c.terms)-1]
}

// pass lets time go by in virtual time.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantIDs compares the ids of all candidates in their order.
func wantIDs(t *world, e *election.Election, want ...string) {
	t.Helper()
	all, err := e.Contenders(t.Context())
	must(t, err)
	for i, c := range all {
		if len(all) != len(want) || c.ID != want[i] || string(c.Data) != want[i] || c.Holder != (i == 0) {
			t.Fatalf("candidates %+v, want %q", all, want)
		}
	}
}

func TestMain(m *testing.M) { testserver.Main(m) }
