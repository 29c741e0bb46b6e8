package zktest_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// shared is a standalone server for the tests that leave it as it was. The first test that asks
// starts it. TestProperty looks for its properties.
var shared struct {
	once     sync.Once
	ensemble *zktest.Ensemble
	err      error
}

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		orphanMain()
	}
	testserver.Main(m, func() {
		if shared.ensemble == nil {
			return
		}
		if err := shared.ensemble.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
}

// sharedServer returns the address of the shared server.
func sharedServer(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() {
		shared.ensemble, shared.err = zktest.NewReal(zktest.Property("maxClientCnxns", "7"), zktest.Property("some.path", `C:\keys`),
			zktest.Property("maxClientCnxns", "1100"))
	})
	if errors.Is(shared.err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.ensemble.Addr(0)
}

// connect returns a client of the servers at addr that has a session.
func connect(t testing.TB, addr string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events := dial(t, addr, testserver.Patience)
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return conn.State() == zk.StateHasSession })
	return conn, events
}

// dial returns a client of the servers at addr that may not have a session yet.
func dial(t testing.TB, addr string, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(addr, ","), timeout, zk.WithLogger(quiet{}))
	must(t, err)
	t.Cleanup(conn.Close)
	return conn, events
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func create(t testing.TB, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	if _, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

func exists(t testing.TB, conn *zk.Conn, path string) bool {
	t.Helper()
	found, _, err := conn.Exists(path)
	if err != nil {
		t.Fatalf("exists %s: %v", path, err)
	}
	return found
}

// Short names for the tests of this package.
var (
	must = expect.NoError
	soon = expect.Patient
)

// receive waits until c has a value or is closed.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	return expect.Receive(t, what, c)
}
