package schedule_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var (
	patient = expect.Patient
	must    = expect.NoError
	wantErr = expect.Match
)

// connect returns a manager on the shared server. For jobs it is another replica.
func connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return testserver.Connect(tb, testserver.Server(tb).Addr(0), opts...)
}

func newJob(tb testing.TB, m *session.Manager, path string, opts ...schedule.Option) *schedule.Job {
	tb.Helper()
	j, err := schedule.New(m, path, opts...)
	must(tb, err)
	return j
}

// noon is a tick, and later(n) the n-th after it. It has passed when the virtual time of a test begins.
var noon = time.Date(1999, 11, 26, 12, 0, 0, 0, time.UTC)

func later(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }

type connector func(...session.Option) *session.Manager

// inBubble runs f in virtual time, on an ensemble of its own. connect makes a manager, which for jobs is
// another replica.
func inBubble(t *testing.T, f func(t *testing.T, server *zktest.Server, connect connector)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := zktest.Start(t, zktest.Servers(3))
		f(t, server, func(opts ...session.Option) *session.Manager {
			m, err := session.Open("zookeeper:2181", append([]session.Option{
				session.WithDialer(server.Dialer()), session.WithTimeout(10 * time.Second),
				session.WithLogger(quiet),
			}, opts...)...)
			must(t, err)
			t.Cleanup(func() { _ = m.Close() })
			return m
		})
	})
}

// count returns the function of a job, which counts how often it is called.
func count(n *int) func(context.Context) error {
	return func(context.Context) error { *n++; return nil }
}

var quiet = slog.New(slog.DiscardHandler)
