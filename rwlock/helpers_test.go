package rwlock_test

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
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

// long is a session timeout that a busy machine does not exceed: these tests lose sessions only on purpose.
var long = session.WithTimeout(20 * time.Second)

// connect returns a manager on the shared server. For locks it is another process.
func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), append([]session.Option{long}, opts...)...)
}

// proxied returns a manager behind a proxy of its own.
func proxied(tb testing.TB, opts ...session.Option) (*session.Manager, *zktest.Proxy) {
	tb.Helper()
	p := testserver.Proxy(tb)
	return testserver.Connect(tb, p.Addr(), append([]session.Option{long}, opts...)...), p
}

func newLock(tb testing.TB, m *session.Manager, path string, opts ...rwlock.Option) *rwlock.RWMutex {
	tb.Helper()
	rw, err := rwlock.New(m, path, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return rw
}

// persistentDir makes a directory that is never removed, so that requests are the same each time.
func persistentDir(tb testing.TB) string {
	tb.Helper()
	dir := testserver.Path(tb)
	if _, err := testserver.Admin(tb).Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// wantTry checks the result of a try.
func wantTry(tb testing.TB, what string, try func(context.Context) (bool, error), ctx context.Context, want bool) {
	tb.Helper()
	if got, err := try(ctx); got != want || err != nil {
		tb.Fatalf("%s: %v, %v; want %v", what, got, err, want)
	}
}

// background runs f in a goroutine, and sends its error.
func background(f func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

// pending fails the test if ch has a value. It shows only that the call has not returned yet, so use it when the state
// of the server says that the call cannot return.
func pending(tb testing.TB, what string, ch <-chan error) {
	tb.Helper()
	select {
	case err := <-ch:
		tb.Fatalf("%s: returned (%v), which it must not yet", what, err)
	default:
	}
}

// queued starts f, and returns when the directory has n nodes.
func queued(tb testing.TB, dir string, n int, f func(context.Context) error) <-chan error {
	tb.Helper()
	ctx := patient(tb)
	ch := background(func() error { return f(ctx) })
	testserver.WaitChildren(tb, dir, n)
	return ch
}

// expire ends the session of a manager behind a proxy.
func expire(tb testing.TB, proxy *zktest.Proxy, m *session.Manager) {
	tb.Helper()
	must(tb, proxy.Expire(patient(tb), testserver.Session(tb, m).ID()))
}

// waitLost waits until a hold is known to be lost.
func waitLost(tb testing.TB, held func() bool) {
	tb.Helper()
	zktest.Eventually(tb, testserver.Patience, "the loss to be known", func() bool { return !held() })
}

// picture shows the contenders in order, as W or R, with a star for a holder.
func picture(tb testing.TB, rw *rwlock.RWMutex) string {
	tb.Helper()
	all, err := rw.Contenders(patient(tb))
	must(tb, err)
	var words []string
	for _, c := range all {
		n, _ := queue.ParseNode(path.Base(c.Path))
		word := map[string]string{
			queue.PrefixWrite: "W", queue.PrefixKazooLock: "w",
			queue.PrefixRead: "R", queue.PrefixKazooRead: "r",
		}[n.Prefix]
		if c.Holder {
			word += "*"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func wantPicture(tb testing.TB, rw *rwlock.RWMutex, want string) {
	tb.Helper()
	if got := picture(tb, rw); got != want {
		tb.Fatalf("in the queue: %s; want %s", got, want)
	}
}

// node is a contender made by hand, as by another library.
type node struct {
	tb   testing.TB
	path string
}

// forge creates an ephemeral sequential node whose name begins with prefix.
func forge(tb testing.TB, dir, prefix string) node {
	tb.Helper()
	p, err := testserver.Admin(tb).Create(dir+"/"+prefix, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	must(tb, err)
	return node{tb, p}
}

// beside creates the node with which Curator 5.5 takes the read lock of a write holder. It is not sequential, and has
// the write node's sequence.
func (n node) beside() node {
	n.tb.Helper()
	sequence := n.path[len(n.path)-10:]
	p, err := testserver.Admin(n.tb).Create(path.Dir(n.path)+"/"+curator(queue.PrefixRead)+sequence,
		nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	must(n.tb, err)
	return node{n.tb, p}
}

func (n node) delete() {
	n.tb.Helper()
	testserver.Delete(n.tb, n.path)
}

// curator returns the beginning of a name of Curator's.
func curator(prefix string) string { return "_c_" + uuid.NewString() + "-" + prefix }

// watchHook sends a value when a contender has set its watches, and knows who is ahead.
func watchHook(watching chan<- struct{}) session.Option {
	return session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			return ctx, testserver.WhenKnown(w, func() { watching <- struct{}{} })
		},
	})
}

// inDir matches all requests for the directory and below it.
func inDir(dir string) zktest.Match {
	return func(r zktest.Request) bool { return r.Path == dir || strings.HasPrefix(r.Path, dir+"/") }
}

// toEnter matches the requests below a directory but those that get a node. After a while, a holder gets its own, to watch
// it.
func toEnter(dir string) zktest.Match {
	return func(r zktest.Request) bool { return inDir(dir)(r) && r.Op != zktest.OpGetData }
}

// listing matches requests for the directory's children.
func listing(dir string) zktest.Match {
	return func(r zktest.Request) bool {
		return (r.Op == zktest.OpGetChildren || r.Op == zktest.OpGetChildren2) && r.Path == dir
	}
}
