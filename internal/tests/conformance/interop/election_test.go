package interop_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Curator's LeaderSelector and LeaderLatch elect one leader together with this module's elections, in the
// order of arrival, and each side shows the ids of the other.
func TestElection(t *testing.T) {
	longtest.InCI(t)
	for kind, opts := range map[string][]election.Option{
		"selector": nil,
		"latch":    {election.WithLeaderLatch()},
	} {
		t.Run(kind, func(t *testing.T) {
			if !testserver.Real(t) {
				testserver.Missing(t, zktest.ErrNoZooKeeper)
			}
			if kind == "latch" {
				longtest.Only(t) // it differs in names only
			}
			t.Run("hand over", func(t *testing.T) { handOver(t, kind, opts) })
			t.Run("lost", func(t *testing.T) { longtest.Only(t); lose(t, kind, opts) })
		})
	}
}

// handOver has Go lead while Java waits, and the reverse.
func handOver(t *testing.T, kind string, opts []election.Option) {
	path := testserver.Path(t)
	first := newCandidate(t, connect(t), path, "go-1", opts)
	first.leads(t)
	java := startJava(t, path, kind, "java-1", longSession)
	testserver.WaitChildren(t, path, 2)
	second := newCandidate(t, connect(t), path, "go-2", opts)
	testserver.WaitChildren(t, path, 3)

	java.answers(t, "leader", "leader go-1")
	java.answers(t, "participants", "participants go-1* java-1 go-2")
	second.shows(t, "go-1", "java-1", "go-2")

	first.stop()
	java.says(t, "leads")
	java.answers(t, "leader", "leader java-1")
	java.answers(t, "participants", "participants java-1* go-2")
	second.shows(t, "java-1", "go-2")
	if second.IsLeader() {
		t.Error("two leaders")
	}

	java.order(t, "resign")
	second.leads(t)
	second.shows(t, "go-2")
}

// lose cuts a leader in Go off, until the server has expired its session.
func lose(t *testing.T, kind string, opts []election.Option) {
	path := testserver.Path(t)
	proxy := testserver.Proxy(t)
	ours := newCandidate(t, testserver.Connect(t, proxy.Addr(), session.WithTimeout(4*time.Second)), path, "go", opts)
	term := ours.leads(t)
	java := startJava(t, path, kind, "java", longSession)
	testserver.WaitChildren(t, path, 2)
	proxy.Blackhole(zktest.Both)
	java.says(t, "leads")
	if term.Err() == nil || !errors.Is(context.Cause(term), session.ErrLost) {
		t.Errorf("Java leads, and the context of our leader says %v", context.Cause(term))
	}
	proxy.Heal()
	testserver.WaitChildren(t, path, 2)
	ours.shows(t, "java", "go")
	java.order(t, "resign")
	ours.leads(t)
}

// candidate is an Election whose leader does nothing.
type candidate struct {
	*election.Election
	terms chan context.Context
	stop  func()
}

func newCandidate(t *testing.T, m *session.Manager, path, id string, opts []election.Option) *candidate {
	t.Helper()
	e, err := election.New(m, path, append([]election.Option{election.WithID(id)}, opts...)...)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	ended := make(chan struct{})
	c := &candidate{e, make(chan context.Context, 1), func() { cancel(); <-ended }}
	go func() {
		defer close(ended)
		err := e.Run(ctx, func(ctx context.Context) error {
			c.terms <- ctx
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Errorf("Run of %s: %v", id, err)
		}
	}()
	t.Cleanup(c.stop)
	return c
}

func (c *candidate) leads(t *testing.T) context.Context {
	t.Helper()
	select {
	case ctx := <-c.terms:
		return ctx
	case <-time.After(limit / 2):
		t.Fatal("a candidate in Go does not lead")
		return nil
	}
}

// shows checks the candidates that Go sees. The first one leads.
func (c *candidate) shows(t *testing.T, ids ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	defer cancel()
	all, err := c.Contenders(ctx)
	must(t, err)
	var got []string
	for i, c := range all {
		got = append(got, c.ID)
		if c.Holder != (i == 0) {
			t.Errorf("contender %d: %+v", i, c)
		}
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		t.Errorf("contenders %v, want %v", got, ids)
	}
	if leader, err := c.Leader(ctx); err != nil || leader.ID != ids[0] {
		t.Errorf("leader %q, %v, want %s", leader.ID, err, ids[0])
	}
}

// longSession is the timeout of a session that should last. A LeaderSelector that loses its session while it waits
// gives up.
const longSession = 20 * time.Second

func startJava(t *testing.T, path, kind, id string, timeout time.Duration) *dialog {
	t.Helper()
	return startDialog(t, "CuratorElection", testserver.Server(t).Addr(0), path, kind, id,
		strconv.Itoa(int(timeout.Milliseconds())), strconv.Itoa(int(limit.Seconds())))
}

// Curator's Revoker reaches our holders. Revoke reaches Curator's holders, of which nobody
// can know whether they listen.
func TestRevoke(t *testing.T) {
	longtest.InCI(t)
	newSite(t, 1) // skips the test where there is no real server
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	java := startDialog(t, "CuratorRevoker", testserver.Server(t).Addr(0))
	m, dir := testserver.Connect(t, testserver.Server(t).Addr(0)), testserver.Path(t)

	mx, err := zklock.New(m, dir+"/a")
	must(t, err)
	ours, err := mx.Acquire(ctx)
	must(t, err)
	java.answers(t, "revoke "+ours.Path(), "done")
	select {
	case <-ours.Revoked():
	case <-ctx.Done():
		t.Fatal("our holder was not asked")
	}
	must(t, ours.Release(ctx))
	err = mx.Do(ctx, func(work context.Context) error {
		lease, _ := queue.LeaseFrom(work)
		java.answers(t, "revoke "+lease.Path(), "done")
		<-work.Done()
		return work.Err()
	})
	if !errors.Is(err, queue.ErrRevoked) {
		t.Errorf("Do returns %v", err)
	}

	theirs, err := zklock.New(m, dir+"/b")
	must(t, err)
	java.answers(t, "hold "+dir+"/b", "done")
	all, err := theirs.Contenders(ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v, want one contender", all, err)
	}
	must(t, zklock.Revoke(ctx, m, all[0].Path))
	java.says(t, "asked")
	java.answers(t, "release", "done")
}
