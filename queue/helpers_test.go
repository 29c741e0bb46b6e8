package queue_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// mutex is the kind of lock that most tests use.
var mutex = &queue.Kind{
	Name:     "mutex",
	Prefixes: []string{queue.PrefixLock, queue.PrefixKazooLock},
	Policy:   func(queue.Node) queue.Policy { return queue.Policy{} },
}

var ask = queue.Request{Kind: mutex}

// long is a session timeout for tests in which no session may be lost, and short one for tests in
// which one is.
const (
	long  = 20 * time.Second
	short = 4 * time.Second
)

// patient returns a context that bounds the wait for what must happen.
func patient(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Bound())
	tb.Cleanup(cancel)
	return ctx
}

// persistentDir makes a directory that stays, so that each acquisition sends the same requests.
func persistentDir(tb testing.TB) string {
	tb.Helper()
	dir := testserver.Path(tb)
	if _, err := testserver.Admin(tb).Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// client returns a queue with a session of its own, connected to the server directly.
func client(tb testing.TB, dir string, opts ...session.Option) *queue.Queue {
	tb.Helper()
	opts = append([]session.Option{session.WithTimeout(long)}, opts...)
	return on(tb, testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...), dir)
}

// proxied returns a queue with a session and a proxy of its own.
func proxied(tb testing.TB, dir string, opts ...session.Option) (*queue.Queue, *zktest.Proxy, *session.Manager) {
	tb.Helper()
	p := testserver.Proxy(tb)
	opts = append([]session.Option{session.WithTimeout(long)}, opts...)
	m := testserver.Connect(tb, p.Addr(), opts...)
	return on(tb, m, dir), p, m
}

func on(tb testing.TB, m *session.Manager, dir string) *queue.Queue {
	tb.Helper()
	q, err := queue.New(m, dir)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

func acquire(tb testing.TB, q *queue.Queue) *queue.Lease {
	tb.Helper()
	l, err := q.Acquire(patient(tb), ask)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func release(tb testing.TB, l *queue.Lease) {
	tb.Helper()
	if err := l.Release(patient(tb)); err != nil {
		tb.Fatal(err)
	}
}

// call is an Acquire that is under way.
type call struct {
	cancel context.CancelFunc
	done   chan struct{}
	lease  *queue.Lease
	err    error
}

func begin(tb testing.TB, q *queue.Queue, r queue.Request) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.lease, c.err = q.Acquire(ctx, r)
	}()
	tb.Cleanup(func() {
		cancel()
		<-c.done
	})
	return c
}

// enter begins an Acquire and returns when its node is the n-th in the directory.
func enter(tb testing.TB, q *queue.Queue, n int) *call {
	tb.Helper()
	c := begin(tb, q, ask)
	testserver.WaitChildren(tb, q.Path(), n)
	return c
}

// get waits for the lease.
func (c *call) get(tb testing.TB) *queue.Lease {
	tb.Helper()
	c.wait(tb)
	if c.err != nil {
		tb.Fatal(c.err)
	}
	return c.lease
}

func (c *call) wait(tb testing.TB) {
	tb.Helper()
	await(tb, c.done, "Acquire to return")
}

// waits fails if the call has returned.
func (c *call) waits(tb testing.TB, why string) {
	tb.Helper()
	select {
	case <-c.done:
		tb.Fatalf("Acquire returned (%v), though %s", c.err, why)
	default:
	}
}

func await(tb testing.TB, done <-chan struct{}, what string) {
	tb.Helper()
	select {
	case <-done:
	case <-time.After(testserver.Patience):
		tb.Fatalf("gave up waiting for %s", what)
	}
}

// onlyChild fails unless the lease's node is the directory's only child.
func onlyChild(tb testing.TB, l *queue.Lease) {
	tb.Helper()
	names := testserver.Children(tb, path.Dir(l.Path()))
	if len(names) != 1 || names[0] != path.Base(l.Path()) {
		tb.Fatalf("children %v, want %s alone", names, path.Base(l.Path()))
	}
	if err := l.Err(); err != nil {
		tb.Fatal(err)
	}
}

// ofContenders matches requests of a kind, for contenders' nodes in dir or for the listing of dir.
func ofContenders(dir string, op zktest.Op) zktest.Match {
	if op == zktest.OpGetChildren2 {
		return func(r zktest.Request) bool {
			return (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2) && r.Path == dir
		}
	}
	return zktest.On(op, dir+"/")
}

// inDir matches every request for the directory and its children.
func inDir(dir string) zktest.Match {
	return func(r zktest.Request) bool { return r.Path == dir || strings.HasPrefix(r.Path, dir+"/") }
}

func expire(t *testing.T, p *zktest.Proxy, m *session.Manager) {
	t.Helper()
	mustBe(t, p.Expire(patient(t), testserver.Session(t, m).ID()), nil)
}

func tokenOf(tb testing.TB, l *queue.Lease) int64 {
	tb.Helper()
	n, err := l.Token(patient(tb))
	mustBe(tb, err, nil)
	return n
}

func mustBe(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Fatalf("error %v, want one that matches %v", err, target)
	}
}

// nth matches the n-th request that m matches.
func nth(n int, m zktest.Match) zktest.Match {
	var seen atomic.Int64
	return func(r zktest.Request) bool { return m(r) && seen.Add(1) == int64(n) }
}

// newest returns the name of the last child.
func newest(t *testing.T, dir string) string {
	t.Helper()
	names := testserver.Children(t, dir)
	return slices.MaxFunc(names, func(a, b string) int {
		// Ten digits, all of one length: text order will do.
		if a[len(a)-10:] < b[len(b)-10:] {
			return -1
		}
		return 1
	})
}

// watching returns a hook, and a channel. The hook sends a value to the channel each time a contender begins to wait, once the
// contender knows whom it waits for.
func watching() (session.Option, <-chan struct{}) {
	watches := make(chan struct{}, 100)
	return session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, i session.WatchInfo) (context.Context, func(error)) {
			return ctx, testserver.WhenKnown(i, func() { watches <- struct{}{} })
		},
	}), watches
}
