package schedule_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Short names for the tests of this package.
var (
	must    = expect.NoError
	wantErr = expect.Match
)

// path is that of the job in all tests.
const path = "/jobs/report"

var (
	once  = schedule.WithMaxTries(1)
	twice = schedule.WithMaxTries(2)

	errWork = errors.New("the work has failed")
)

// noon is a tick, and later(n) the n-th after it. It has passed when the virtual time of a test begins.
var noon = time.Date(1999, 11, 26, 12, 0, 0, 0, time.UTC)

func later(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }

func hourly(tick time.Time) time.Time { return tick.Add(time.Hour) }

// world is an ensemble of its own in virtual time, and what the replicas of a job have run there.
type world struct {
	*testing.T
	server *zktest.Server

	mu  sync.Mutex
	ran []int // the ticks of which a function was called, as hours after noon
}

func inBubble(t *testing.T, f func(t *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&world{T: t, server: zktest.Start(t, zktest.Servers(3))}) })
}

// connect returns a manager, which for jobs is another replica.
func (t *world) connect(opts ...session.Option) *session.Manager {
	t.Helper()
	m, err := session.Open(t.server.Hosts(), append([]session.Option{
		session.WithDialer(t.server.Dialer()), session.WithTimeout(10 * time.Second),
		session.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// job returns the job in a replica of its own.
func (t *world) job(opts ...schedule.Option) *schedule.Job {
	t.Helper()
	return t.jobOf(t.connect(), opts...)
}

func (t *world) jobOf(m *session.Manager, opts ...schedule.Option) *schedule.Job {
	t.Helper()
	j, err := schedule.New(m, path, opts...)
	must(t, err)
	return j
}

// session returns a session in which no replica is.
func (t *world) session() *session.Session { return testserver.Session(t, t.connect()) }

func (t *world) expire(m *session.Manager) error {
	return t.server.Expire(t.Context(), testserver.Session(t, m).ID())
}

// hold holds the job's lock, as a replica that is at work.
func (t *world) hold() (release func()) {
	t.Helper()
	mx, err := zklock.New(t.connect(), path+"/lock")
	must(t, err)
	must(t, mx.Lock(t.Context()))
	return func() { must(t, mx.Unlock()) }
}

// write writes the record by hand.
func (t *world) write(record string) {
	t.Helper()
	s := t.session()
	if stat, err := s.Exists(t.Context(), path+"/last"); stat == nil {
		must(t, err)
		_, err = s.Create(t.Context(), path+"/last", nil, session.Persistent)
		must(t, err)
	}
	_, err := s.Set(t.Context(), path+"/last", []byte(record), -1)
	must(t, err)
}

// work is the function of a job for CatchUp, and at(n) that of the n-th tick for Run.
func (t *world) work(_ context.Context, tick time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran = append(t.ran, int(tick.Sub(noon)/time.Hour))
	return nil
}

func (t *world) at(n int) func(context.Context) error {
	return func(ctx context.Context) error { return t.work(ctx, later(n)) }
}

// failsAt is the function of a job that fails at the n-th tick.
func (t *world) failsAt(n int) func(context.Context, time.Time) error {
	return func(ctx context.Context, tick time.Time) error {
		must(t, t.work(ctx, tick))
		if tick.Equal(later(n)) {
			return errWork
		}
		return nil
	}
}

// ran compares the ticks that were run since the last call.
func (t *world) wantRan(want ...int) {
	t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if diff := cmp.Diff(want, t.ran); diff != "" {
		t.Errorf("ticks (-want +ran):\n%s", diff)
	}
	t.ran = nil
}

// is checks what a call returns: the outcome, and an error that matches all of errs, or none.
func (t *world) is(want schedule.Outcome, errs ...error) func(schedule.Outcome, error) {
	return func(got schedule.Outcome, err error) {
		t.Helper()
		if got != want || len(errs) == 0 && err != nil {
			t.Errorf("%v, %v; want %v, %v", got, err, want, errs)
		}
		wantErr(t, got.String(), err, errs...)
	}
}

// skips checks that a call returns this outcome, and that so many ticks between two hours after noon were left out.
func (t *world) skips(want schedule.Outcome, n, first, last int) func(schedule.Outcome, error) {
	return func(got schedule.Outcome, err error) {
		t.Helper()
		var s *schedule.SkippedError
		if got != want || !errors.As(err, &s) || s.Ticks != n || !s.First.Equal(later(first)) || !s.Last.Equal(later(last)) || s.Err != nil {
			t.Errorf("%v, %v; want %v, and %d of %d to %d left out", got, err, want, n, first, last)
		}
	}
}

// wantLast compares the record, without who wrote it and when.
func (t *world) wantLast(j *schedule.Job, want schedule.Record) {
	t.Helper()
	last, err := j.Last(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, last, cmpopts.IgnoreFields(schedule.Record{}, "By", "At")); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if !want.Tick.IsZero() && (last.By == "" || time.Since(last.At).Abs() > time.Hour) {
		t.Errorf("by %q at %v", last.By, last.At)
	}
}

func TestMain(m *testing.M) { testserver.Main(m) }
