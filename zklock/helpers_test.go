package zklock_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
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

// connect returns a manager on the shared server. For locks it is another process.
func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...)
}

func newMutex(tb testing.TB, m *session.Manager, path string, opts ...zklock.Option) *zklock.Mutex {
	tb.Helper()
	mx, err := zklock.New(m, path, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return mx
}

// write sets the data of a node, as another client does.
func write(tb testing.TB, node, data string) {
	tb.Helper()
	_, err := testserver.Admin(tb).Set(node, []byte(data), -1)
	must(tb, err)
}

// background runs f in a goroutine, and sends its error.
func background(f func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

// pending fails the test if ch has a value. It shows only that the call has not returned yet, so use it
// when the state of the server says that the call cannot return.
func pending(tb testing.TB, what string, ch <-chan error) {
	tb.Helper()
	select {
	case err := <-ch:
		tb.Fatalf("%s: returned (%v), which it must not yet", what, err)
	default:
	}
}

// expire ends the session of a manager behind a proxy.
func expire(tb testing.TB, proxy *zktest.Proxy, m *session.Manager) {
	tb.Helper()
	must(tb, proxy.Expire(patient(tb), testserver.Session(tb, m).ID()))
}

// waitLost waits until a mutex knows that it is held no longer.
func waitLost(tb testing.TB, mx *zklock.Mutex) {
	tb.Helper()
	zktest.Eventually(tb, testserver.Patience, "the loss to be known", func() bool { return !mx.Held() })
}

// watchesUnder returns the number of watches that a server has on dir and below it.
func watchesUnder(tb testing.TB, server testserver.Interface, dir string) int {
	tb.Helper()
	text, err := server.Word(patient(tb), 0, "wchp") // each path, then its sessions, indented
	must(tb, err)
	n, ours := 0, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "/") {
			ours = strings.HasPrefix(line, dir)
		} else if ours && strings.HasPrefix(line, "\t") {
			n++
		}
	}
	return n
}

var lazy = zklock.WithLazyRelease(time.Minute)

// waitGoroutines waits until there are no more than n goroutines, besides the four that each session keeps
// for its next requests.
func waitGoroutines(tb testing.TB, n, sessions int) {
	tb.Helper()
	n += sessions * 4
	limit := time.Now().Add(testserver.Patience)
	for runtime.NumGoroutine() > n {
		if time.Now().After(limit) {
			buf := make([]byte, 1<<20)
			tb.Fatalf("%d goroutines, want at most %d:\n%s", runtime.NumGoroutine(), n, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

// slotted is a lock with a slot: one hold at a time.
type slotted interface {
	Lock(context.Context) error
	TryLock(context.Context) (bool, error)
	Unlock() error
	Held() bool
}

const lockPath = "/locks/one"

// inBubble runs f in virtual time, with a server of its own. connect makes a manager, which for locks is
// another process.
func inBubble(t *testing.T, f func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.ContainerCheck(24*time.Hour))
		f(t, server, func(opts ...session.Option) *session.Manager {
			m, err := session.Connect(t.Context(), "zookeeper:2181", append([]session.Option{
				session.WithDialer(server.Dialer()), session.WithTimeout(10 * time.Second),
				session.WithLogger(slog.New(slog.DiscardHandler)),
			}, opts...)...)
			must(t, err)
			t.Cleanup(func() { _ = m.Close() })
			return m
		})
	})
}
