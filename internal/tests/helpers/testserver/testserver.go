// Package testserver gives the tests of this module one ZooKeeper server per test binary, and
// the helpers that most of them need. The server is a real one. If there is no ZooKeeper on
// this machine it is the in-process server of package zktest, unless [zktest.RequireEnv]
// forbids that, as it does in continuous integration.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Patience bounds waits for things that happen at once unless the machine is busy.
const Patience = 20 * time.Second

// startTime is how long the shared server may take to start on a busy machine.
const startTime = time.Minute

// Bound returns how long a call may take that may be the first to need the shared server.
func Bound() time.Duration {
	if started.Load() {
		return Patience
	}
	return startTime + Patience
}

// started reports whether the shared server has started, or has failed to.
var started atomic.Bool

// shared is the server and a plain client of it. The first test that asks starts both.
var shared struct {
	once   sync.Once
	server Interface
	admin  *zk.Conn
	err    error
}

// Interface is the part of a server that tests use, whichever kind it is.
type Interface interface {
	Addr(i int) string
	ConnectString() string
	Word(ctx context.Context, i int, word string) (string, error)
	Metrics(ctx context.Context, i int) (map[string]string, error)
	Close() error
}

// inProcess makes a [zktest.Server] an Interface.
type inProcess struct{ *zktest.Server }

func (s inProcess) Addr(int) string { return s.Server.Addr() }
func (s inProcess) Word(_ context.Context, _ int, word string) (string, error) {
	return s.Server.Word(word)
}
func (s inProcess) Metrics(context.Context, int) (map[string]string, error) {
	return s.Server.Metrics()
}

// Main is the body of TestMain. It runs the tests and then the functions in after, stops the
// shared server, and fails if a goroutine is left.
func Main(m *testing.M, after ...func()) { goleak.VerifyTestMain(runner{m, after}) }

type runner struct {
	*testing.M
	after []func()
}

func (r runner) Run() int {
	code := r.M.Run()
	for _, f := range r.after {
		f()
	}
	if shared.admin != nil {
		shared.admin.Close()
	}
	if shared.server != nil {
		if err := shared.server.Close(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	settle()
	return code
}

// settle waits for goroutines that outlive the call that started them, such as those of a Connect
// that has failed. On a busy machine that can take longer than goleak waits, which is less than
// half a second.
func settle() {
	for end := time.Now().Add(Patience); goleak.Find() != nil && time.Now().Before(end); {
	}
}

const (
	tick           = 200 * time.Millisecond
	containerCheck = 2 * time.Second
)

func start() {
	defer started.Store(true)
	if shared.server, shared.err = newServer(); shared.err != nil {
		return
	}
	shared.admin, _, shared.err = zk.Connect([]string{shared.server.Addr(0)}, Patience, zk.WithLogger(nothing{}))
}

func newServer() (Interface, error) {
	e, err := zktest.NewReal(zktest.TickTime(tick), zktest.ContainerCheck(containerCheck))
	if err == nil {
		return e, nil
	}
	if !errors.Is(err, zktest.ErrNoZooKeeper) || required() {
		return nil, err
	}
	s, err := zktest.New(zktest.TickTime(tick), zktest.ContainerCheck(containerCheck),
		zktest.MinSessionTimeout(2*tick), zktest.MaxSessionTimeout(time.Minute))
	if err != nil {
		return nil, err
	}
	return inProcess{s}, nil
}

type nothing struct{}

func (nothing) Printf(string, ...any) {}

// Server returns the shared server. Its tick is 200 ms, so session timeouts are at least 400 ms. It
// deletes empty containers every two seconds.
func Server(tb testing.TB) Interface {
	tb.Helper()
	shared.once.Do(start)
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.server
}

// Real reports whether the shared server is a real one, outside this process.
func Real(tb testing.TB) bool {
	_, inside := Server(tb).(inProcess)
	return !inside
}

// Missing skips a test that needs something that is not installed. It fails the test if
// [zktest.RequireEnv] is set.
func Missing(tb testing.TB, what error) {
	tb.Helper()
	if required() {
		tb.Fatal(what)
	}
	tb.Skip(what)
}

func required() bool {
	v := os.Getenv(zktest.RequireEnv)
	return v != "" && v != "0"
}

// Admin returns a plain client of the shared server, to check and change its nodes without the
// library.
func Admin(tb testing.TB) *zk.Conn {
	tb.Helper()
	Server(tb)
	return shared.admin
}

var paths atomic.Int64

// Path returns a path that no other test uses.
func Path(tb testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, tb.Name())
	return "/" + name + "-" + strconv.FormatInt(paths.Add(1), 10)
}

// Connect returns a manager that is closed when the test ends. It logs nothing unless an option
// sets a logger.
func Connect(tb testing.TB, servers string, opts ...session.Option) *session.Manager {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	quiet := session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	// The manager would open sessions to find out the tick.
	told := session.WithTickTime(tick)
	m, err := session.Connect(ctx, servers, append([]session.Option{quiet, told}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

// Proxy returns a fault proxy in front of the shared server.
func Proxy(tb testing.TB) *zktest.Proxy {
	tb.Helper()
	return zktest.StartProxy(tb, Server(tb).Addr(0))
}

// Session returns the live session of a manager.
func Session(tb testing.TB, m *session.Manager) *session.Session {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	s, err := m.Session(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Children returns the names under dir. There are none if dir does not exist.
func Children(tb testing.TB, dir string) []string {
	tb.Helper()
	names, _, err := Admin(tb).Children(dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		tb.Fatalf("children of %s: %v", dir, err)
	}
	return names
}

// WaitChildren waits until dir has n children.
func WaitChildren(tb testing.TB, dir string, n int) {
	tb.Helper()
	zktest.Eventually(tb, Patience, fmt.Sprintf("%d children in %s", n, dir), func() bool {
		return len(Children(tb, dir)) == n
	})
}

// Delete deletes a node, as an operator would.
func Delete(tb testing.TB, elements ...string) {
	tb.Helper()
	if err := Admin(tb).Delete(path.Join(elements...), -1); err != nil {
		tb.Fatalf("delete %s: %v", path.Join(elements...), err)
	}
}

// Watches returns the number of watches on the shared server.
func Watches(tb testing.TB) int {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	metrics, err := Server(tb).Metrics(ctx, 0)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.Atoi(metrics["zk_watch_count"])
	if err != nil {
		tb.Fatalf("zk_watch_count: %v", err)
	}
	return n
}
