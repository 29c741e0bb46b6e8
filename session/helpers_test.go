package session_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMain(m *testing.M) { testserver.Main(m) }

var (
	patient  = expect.Patient
	must     = expect.NoError
	wantErr  = expect.Match
	isClosed = expect.Closed
)

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

var quiet = session.WithLogger(slog.New(slog.DiscardHandler))

// virtually connects in virtual time, and returns the session.
func virtually(t *testing.T, servers string, d dial, opts ...session.Option) (*session.Manager, *session.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, servers, append([]session.Option{quiet, session.WithDialer(d)}, opts...)...)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	s, err := m.Session(ctx)
	must(t, err)
	return m, s
}

// env is a server in virtual time with a session that the test is about, and another client that looks.
type env struct {
	*zktest.Server
	t     *testing.T
	m     *session.Manager
	s     *session.Session
	other *session.Session
	d     string // the directory; its parent is there
	cases int    // how many there were of anew
}

// newEnv starts the server, and connects both clients. It is called in a bubble.
func newEnv(t *testing.T, opts ...session.Option) *env {
	t.Helper()
	e := &env{Server: zktest.Start(t), t: t, d: "/p/d"}
	e.m, e.s = virtually(t, "h:1", e.Dialer(), opts...)
	_, e.other = virtually(t, "h:1", e.Dialer())
	must(t, makeDir(t.Context(), e.other, e.d))
	return e
}

// inBubble runs a test in a bubble of its own.
func inBubble(t *testing.T, f func(*testing.T, *env), opts ...session.Option) {
	synctest.Test(t, func(t *testing.T) { f(t, newEnv(t, opts...)) })
}

// dir makes a directory for the test, and returns it.
func dir(t testing.TB, s *session.Session) string {
	t.Helper()
	d := testserver.Path(t)
	must(t, expect.Err(s.Create(patient(t), d, nil, session.Persistent)))
	return d
}

// history has the changes that a subscriber got.
type history struct {
	mu      sync.Mutex
	changes []session.Change
}

func (h *history) add(c session.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
}

func (h *history) states() []session.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []session.State
	for _, c := range h.changes {
		out = append(out, c.To)
	}
	return out
}

func (h *history) wait(t testing.TB, want ...session.State) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("states %v, awaited were %v", h.states(), want)
		}
	})
	zktest.Eventually(t, testserver.Patience, "the states", func() bool { return slices.Equal(h.states(), want) })
}

// behindProxy returns a manager, its session, and the proxy it goes through.
func behindProxy(t testing.TB, timeout time.Duration, opts ...session.Option) (*zktest.Proxy, *session.Manager, *session.Session) {
	t.Helper()
	p := testserver.Proxy(t)
	m := testserver.Connect(t, p.Addr(), append([]session.Option{session.WithTimeout(timeout)}, opts...)...)
	return p, m, testserver.Session(t, m)
}

// enter makes a node with a fixed name.
func enter(t testing.TB, s *session.Session, name string) *session.Node {
	t.Helper()
	n, err := s.Enter(t.Context(), session.NewNode{Dir: path.Dir(name), Name: path.Base(name), Fixed: true})
	must(t, err)
	return n
}

// deletes deletes a node of the session in one of the ways that there are.
func deletes(ctx context.Context, s *session.Session, n *session.Node, by string) error {
	switch by {
	case "Delete":
		return s.Delete(ctx, n.Path, -1)
	case "Multi":
		_, err := s.Multi(ctx, &zk.DeleteRequest{Path: n.Path, Version: -1})
		return err
	}
	return gone(n.Remove(ctx))
}

// gone waits for the end of a removal.
func gone(r *session.Removal) error {
	select {
	case <-r.Done():
		return r.Err()
	case <-time.After(testserver.Patience):
		return errors.New("the removal goes on")
	}
}

// makeNode makes an ephemeral node with a fixed name.
func makeNode(ctx context.Context, s *session.Session, at string, data []byte) (string, error) {
	n, err := s.Enter(ctx, session.NewNode{Dir: path.Dir(at), Name: path.Base(at), Data: data, Fixed: true})
	if err != nil {
		return "", err
	}
	return n.Path, nil
}

// makeNumbered makes an ephemeral node whose name begins with an id and ends with a number.
func makeNumbered(ctx context.Context, s *session.Session, at string, data []byte) (string, error) {
	n, err := s.Enter(ctx, session.NewNode{Dir: path.Dir(at), Name: path.Base(at), Data: data})
	if err != nil {
		return "", err
	}
	return n.Path, nil
}

// makeDir makes a directory, unless it is there.
func makeDir(ctx context.Context, s *session.Session, at string) error {
	_, err := s.Create(ctx, at, nil, session.Container)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// pause holds up the requests of a kind whose context is from mark, until goOn is closed: as a goroutine that gets no
// processor.
type pause struct {
	op   string
	goOn chan struct{}
}

func newPause(op string) *pause { return &pause{op, make(chan struct{})} }

func (p *pause) mark(ctx context.Context) context.Context { return context.WithValue(ctx, p, true) }

func (p *pause) hooks() session.Option {
	request := func(ctx context.Context, i session.RequestInfo) (context.Context, func(error)) {
		if i.Op == p.op && ctx.Value(p) != nil {
			<-p.goOn
		}
		return ctx, nil
	}
	return session.WithTrace(session.Trace{Request: request})
}
