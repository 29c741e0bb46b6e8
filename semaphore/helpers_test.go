package semaphore_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
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

// long is a session timeout for tests in which no session may be lost by itself.
const long = 20 * time.Second

// connect returns a manager on the shared server. For leases it is another process.
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

// persistent creates a directory that is never removed, with its parents.
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

// wantText checks that the text of an error has all of words.
func wantText(tb testing.TB, err error, words ...string) {
	tb.Helper()
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			tb.Errorf("error %q does not say %q", err, w)
		}
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

// enterAt is enter for a layout in which waiters have their nodes in dir.
func enterAt(tb testing.TB, s *semaphore.Semaphore, n int, dir string) *call {
	tb.Helper()
	before := len(testserver.Children(tb, dir))
	c := begin(tb, s, n)
	testserver.WaitChildren(tb, dir, before+1)
	return c
}

// get waits for the call and returns its lease.
func (c *call) get(tb testing.TB) *queue.Lease {
	tb.Helper()
	must(tb, c.fail(tb))
	return c.lease
}

// fail waits for the call and returns its error.
func (c *call) fail(tb testing.TB) error {
	tb.Helper()
	receive(tb, "the end of AcquireN", c.done)
	return c.err
}

// waits fails the test if the call has returned. It shows only that the call has not returned yet, so use it when the
// state of the server says that the call cannot return.
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

// layouts are the semaphore's own layout and Curator's.
var layouts = []struct {
	name string
	opts []semaphore.Option
	// leases and queue are the directories of the leases and of the waiters, below the path.
	leases, queue string
}{
	{"plain", nil, "", ""},
	{"Curator's", []semaphore.Option{semaphore.WithCuratorLayout()}, "/leases", "/locks"},
}

// under matches all requests for a directory and below it.
func under(dir string) zktest.Match {
	return func(r zktest.Request) bool { return r.Path == dir || strings.HasPrefix(r.Path, dir+"/") }
}

// forge creates the node of a contender by hand, and returns its path.
func forge(tb testing.TB, dir, prefix string) string {
	tb.Helper()
	node, err := testserver.Admin(tb).Create(
		path.Join(dir, "_c_"+uuid.NewString()+"-"+prefix), nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	must(tb, err)
	return node
}
