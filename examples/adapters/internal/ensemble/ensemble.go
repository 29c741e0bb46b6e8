// Package ensemble gives the tests of an adapter three ZooKeeper servers, and processes that lose their sessions. The
// servers are real ones. If there is no ZooKeeper on this machine they are in this process, unless [zktest.RequireEnv]
// forbids that, as it does in continuous integration.
package ensemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Patience bounds waits for things that happen at once unless the machine is busy.
const Patience = 3 * time.Minute

// These are as long as they may be, for a busy machine. No test waits for the end of a session: see [Process.Expire].
const (
	servers = 3
	tick    = 2 * time.Second
	timeout = 20 * tick
)

// shared is the ensemble of the test binary. The first test that needs it starts it.
var shared struct {
	once    sync.Once
	servers interface {
		ConnectString() string
		Close() error
	}
	err error
}

func start() {
	e, err := zktest.NewReal(zktest.Servers(servers), zktest.TickTime(tick))
	if err == nil {
		shared.servers = e
		return
	}
	if v := os.Getenv(zktest.RequireEnv); !errors.Is(err, zktest.ErrNoZooKeeper) || v != "" && v != "0" {
		shared.err = err
		return
	}
	s, err := zktest.New(zktest.Servers(servers), zktest.TickTime(tick))
	if err != nil {
		shared.err = err
		return
	}
	shared.servers = s
}

// Main is the body of TestMain. It runs the tests, stops the servers, and fails if a goroutine is left.
func Main(m *testing.M) {
	testserver.Main(m, func() {
		if shared.servers == nil {
			return
		}
		if err := shared.servers.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
}

// Process is one process of many, as far as ZooKeeper can tell: it has a session of its own, with one of the servers.
type Process struct {
	*session.Manager
	proxy *zktest.Proxy
}

var processes atomic.Int64

// Start starts a process, which ends with the test.
func Start(t testing.TB) *Process {
	t.Helper()
	shared.once.Do(start)
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	addrs := strings.Split(shared.servers.ConnectString(), ",")
	proxy := zktest.StartProxy(t, addrs[int(processes.Add(1))%len(addrs)])
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	quiet := session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	m, err := session.Connect(ctx, proxy.Addr(), quiet, session.WithTimeout(timeout), session.WithTickTime(tick))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return &Process{Manager: m, proxy: proxy}
}

// Expire has the servers end the session, as they do after an outage, and returns when the process knows that.
func (p *Process) Expire(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	s, err := p.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.proxy.Expire(ctx, s.ID()); err != nil {
		t.Fatal(err)
	}
	Wait(t, s.Done(), "the process knows that its session is over")
}

// Free waits until no process has a node at the path of a lock.
func (p *Process) Free(t testing.TB, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := p.proxy.WaitFree(ctx, path); err != nil {
		t.Fatal(err)
	}
}

// Wait waits until a channel has a value or is closed, and returns the value.
func Wait[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("not within %v: %s", Patience, what)
		panic("unreachable")
	}
}

// OK fails the test if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns a value that came without an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
