package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// long is a session timeout for tests in which no session may be lost by itself.
const long = 20 * time.Second

// patient returns a context for what is to happen soon on a machine that may be busy.
func patient(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	tb.Cleanup(cancel)
	return ctx
}

// connect returns a manager on the shared server: another process, as far as leases go.
func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	opts = append([]session.Option{session.WithTimeout(long)}, opts...)
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...)
}

// behind returns a manager behind a proxy.
func behind(tb testing.TB, proxy *zktest.Proxy) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, proxy.Addr(), session.WithTimeout(long))
}

func newSem(tb testing.TB, m *session.Manager, path string, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	tb.Helper()
	s, err := semaphore.New(m, path, limit, opts...)
	must(tb, err)
	return s
}

// persistent makes a directory that stays, with its parents.
func persistent(tb testing.TB, dir, data string) {
	tb.Helper()
	if parent := path.Dir(dir); parent != "/" {
		if ok, _, err := testserver.Admin(tb).Exists(parent); err != nil || !ok {
			persistent(tb, parent, "")
		}
	}
	_, err := testserver.Admin(tb).Create(dir, []byte(data), 0, zk.WorldACL(zk.PermAll))
	must(tb, err)
}

// dataOf returns the data of a node.
func dataOf(tb testing.TB, node string) string {
	tb.Helper()
	data, _, err := testserver.Admin(tb).Get(node)
	must(tb, err)
	return string(data)
}

// must fails the test for an error; it may be called from the test's goroutine only.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// wantErr checks that an error matches all of targets.
func wantErr(tb testing.TB, what string, err error, targets ...error) {
	tb.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			tb.Errorf("%s: error %v, want one that matches %q", what, err, target)
		}
	}
}

// wantText checks that an error says all of words.
func wantText(tb testing.TB, err error, words ...string) {
	tb.Helper()
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			tb.Errorf("error %q does not say %q", err, w)
		}
	}
}

// receive returns what comes on ch, and fails if nothing does.
func receive[T any](tb testing.TB, what string, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testserver.Patience):
		tb.Fatalf("%s: nothing within %v", what, testserver.Patience)
		panic("unreachable")
	}
}

// call is an AcquireN under way.
type call struct {
	cancel context.CancelFunc
	done   chan struct{}
	lease  *queue.Lease
	err    error
}

func begin(tb testing.TB, s *semaphore.Semaphore, n int) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.lease, c.err = s.AcquireN(ctx, n)
	}()
	tb.Cleanup(func() {
		cancel()
		<-c.done
	})
	return c
}

// enter begins an AcquireN and returns when it has a node.
func enter(tb testing.TB, s *semaphore.Semaphore, n int) *call {
	tb.Helper()
	return enterAt(tb, s, n, s.Path())
}

// enterAt is enter where those who wait have their nodes in dir.
func enterAt(tb testing.TB, s *semaphore.Semaphore, n int, dir string) *call {
	tb.Helper()
	before := len(testserver.Children(tb, dir))
	c := begin(tb, s, n)
	testserver.WaitChildren(tb, dir, before+1)
	return c
}

// get returns the lease that the call ends in.
func (c *call) get(tb testing.TB) *queue.Lease {
	tb.Helper()
	must(tb, c.fail(tb))
	return c.lease
}

// fail returns the error that the call ends in.
func (c *call) fail(tb testing.TB) error {
	tb.Helper()
	receive(tb, "the end of AcquireN", c.done)
	return c.err
}

// waits fails if the call has returned. It shows only that it has not yet: call it when
// the state of the server says that it may not.
func (c *call) waits(tb testing.TB, why string) {
	tb.Helper()
	select {
	case <-c.done:
		tb.Fatalf("AcquireN returned (%v), though %s", c.err, why)
	default:
	}
}

// take acquires n leases, which must be free.
func take(tb testing.TB, s *semaphore.Semaphore, n int) *queue.Lease {
	tb.Helper()
	l, err := s.TryAcquireN(patient(tb), n)
	must(tb, err)
	return l
}

// busy checks that n leases are not free.
func busy(tb testing.TB, s *semaphore.Semaphore, n int) {
	tb.Helper()
	_, err := s.TryAcquireN(patient(tb), n)
	wantErr(tb, fmt.Sprintf("TryAcquireN of %d", n), err, queue.ErrBusy)
}

func release(tb testing.TB, leases ...*queue.Lease) {
	tb.Helper()
	for _, l := range leases {
		must(tb, l.Release(patient(tb)))
	}
}

// expire ends the session of a manager behind a proxy.
func expire(tb testing.TB, proxy *zktest.Proxy, m *session.Manager) {
	tb.Helper()
	must(tb, proxy.Expire(patient(tb), testserver.Session(tb, m).ID()))
}

// referee checks, outside of ZooKeeper, that never more leases are held than there are.
type referee struct {
	limit int

	mu    sync.Mutex
	held  map[*queue.Lease]int
	most  int
	count int
	fouls []string
}

// enter is told of a lease of n as soon as it is granted. All that it knows of were granted
// before it asks the first; those that then say they are held, were held when it began.
func (r *referee) enter(l *queue.Lease, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = make(map[*queue.Lease]int)
	}
	r.held[l] = n
	r.count++
	sum := 0
	for l, n := range r.held {
		if l.Err() == nil {
			sum += n
		} else {
			delete(r.held, l)
		}
	}
	r.most = max(r.most, sum)
	if sum > r.limit {
		r.fouls = append(r.fouls, fmt.Sprintf("%d leases are held of %d", sum, r.limit))
	}
}

// check ends the game: never more, and all of them at some time.
func (r *referee) check(tb testing.TB) {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.fouls {
		tb.Error(f)
	}
	if r.most < r.limit {
		tb.Errorf("never more than %d of %d leases were held", r.most, r.limit)
	}
	tb.Logf("%d grants, up to %d leases of %d at a time", r.count, r.most, r.limit)
}

// layouts are the two ways in which leases can be kept.
var layouts = []struct {
	name string
	opts []semaphore.Option
	// leases and queue are where they are, and those who wait, below the path.
	leases, queue string
}{
	{"plain", nil, "", ""},
	{"Curator's", []semaphore.Option{semaphore.WithCuratorLayout()}, "/leases", "/locks"},
}

// under matches every request that has to do with a directory.
func under(dir string) zktest.Match {
	return func(r zktest.Request) bool { return r.Path == dir || strings.HasPrefix(r.Path, dir+"/") }
}

// forge makes the node of a contender in no program, and returns its path.
func forge(tb testing.TB, dir, prefix string) string {
	tb.Helper()
	node, err := testserver.Admin(tb).Create(
		path.Join(dir, "_c_"+uuid.NewString()+"-"+prefix), nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	must(tb, err)
	return node
}
