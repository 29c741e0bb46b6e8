package schedule_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/misusetest"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
)

// Bad input is an error before any I/O.
func TestInput(t *testing.T) {
	m, err := session.Open("127.0.0.1:1")
	must(t, err)
	defer m.Close()
	for what, c := range map[string]struct {
		m    *session.Manager
		path string
		opts []schedule.Option
	}{
		"no manager":             {nil, path, nil},
		"the root":               {m, "/", nil},
		"a long path":            {m, "/" + strings.Repeat("x", 16<<10-2), nil},
		"no tries":               {m, path, []schedule.Option{schedule.WithMaxTries(0)}},
		"too many tries":         {m, path, []schedule.Option{schedule.WithMaxTries(1e9 + 1)}},
		"no name":                {m, path, []schedule.Option{schedule.WithName("")}},
		"a nil option":           {m, path, []schedule.Option{nil}},
		"the name of contenders": {m, "/jobs/lock-0000000001", nil},
	} {
		_, err := schedule.New(c.m, c.path, c.opts...)
		wantErr(t, what, err, session.ErrInvalid)
	}
	j, err := schedule.New(m, path)
	must(t, err)
	if j.Path() != path || j.Manager() != m {
		t.Error(j.Path(), j.Manager())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a call that asks the servers would say so
	nothing := func(context.Context) error { return nil }
	catchUp := func(context.Context, time.Time) error { return nil }
	refused := func(what string, want error) func(schedule.Outcome, error) {
		return func(outcome schedule.Outcome, err error) {
			t.Helper()
			if wantErr(t, what, err, want); outcome != schedule.NotRun {
				t.Error(what, outcome)
			}
		}
	}
	for what, tick := range map[string]time.Time{
		"no tick":       {},
		"the year 0":    time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC),
		"the far year":  time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		"no whole ms":   noon.Add(time.Microsecond),
		"the next tick": time.Now().Truncate(time.Hour).Add(2 * time.Hour),
		"no zero in +1": time.Time{}.In(time.FixedZone("x", 3600)),
	} {
		refused(what, session.ErrInvalid)(j.Run(ctx, tick, nothing))
		refused(what, session.ErrInvalid)(j.TryRun(ctx, tick, nothing))
		refused(what, session.ErrInvalid)(j.CatchUp(ctx, tick, hourly, catchUp))
	}
	refused("no function", session.ErrInvalid)(j.Run(ctx, noon, nil))
	refused("no function", session.ErrInvalid)(j.TryRun(ctx, noon, nil))
	refused("no function", session.ErrInvalid)(j.CatchUp(ctx, noon, hourly, nil))
	refused("no schedule", session.ErrInvalid)(j.CatchUp(ctx, noon, nil, catchUp))
	refused("a context that has ended", context.Canceled)(j.Run(ctx, noon, nothing))
}

// A schedule that returns no later tick, or no tick, is an error, and nothing is run.
func TestBadSchedule(t *testing.T) {
	inBubble(t, func(t *world) {
		j := t.job()
		t.is(schedule.Ran)(j.Run(t.Context(), noon, t.at(0)))
		for _, d := range []time.Duration{0, 1} {
			next := func(tick time.Time) time.Time { return tick.Add(d) }
			t.is(schedule.NotRun, session.ErrInvalid)(j.CatchUp(t.Context(), later(1), next, t.work))
		}
		t.wantRan(0)
	})
}

// A nil context and an object that was not made by its constructor panic, before anything is sent or changed.
func TestMisuse(t *testing.T) {
	inBubble(t, func(t *world) {
		misusetest.Check(t.T, misusetest.Package{
			Name:    "schedule",
			Objects: []misusetest.Object{{Zero: &schedule.Job{}, Made: t.job()}},
			Values:  []any{schedule.Outcome(0), &schedule.SkippedError{}},
		})
	})
}
