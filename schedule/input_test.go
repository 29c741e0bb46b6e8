package schedule_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
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
		"no manager":             {nil, "/jobs/report", nil},
		"the root":               {m, "/", nil},
		"a long path":            {m, "/" + strings.Repeat("x", 16<<10-2), nil},
		"no tries":               {m, "/jobs/report", []schedule.Option{schedule.WithMaxTries(0)}},
		"too many tries":         {m, "/jobs/report", []schedule.Option{schedule.WithMaxTries(1e9 + 1)}},
		"no name":                {m, "/jobs/report", []schedule.Option{schedule.WithName("")}},
		"the name of contenders": {m, "/jobs/lock-0000000001", nil},
	} {
		_, err := schedule.New(c.m, c.path, c.opts...)
		wantErr(t, what, err, session.ErrInvalid)
	}
	j := newJob(t, m, "/jobs/report")
	if j.Path() != "/jobs/report" || j.Manager() != m {
		t.Error(j.Path(), j.Manager())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a call that asks the servers would say so
	nothing := func(context.Context) error { return nil }
	for what, c := range map[string]struct {
		tick time.Time
		f    func(context.Context) error
	}{
		"no tick":       {time.Time{}, nothing},
		"the year 0":    {time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), nothing},
		"the far year":  {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), nothing},
		"no function":   {noon, nil},
		"no whole ms":   {noon.Add(time.Microsecond), nothing},
		"the next tick": {time.Now().Truncate(time.Hour).Add(2 * time.Hour), nothing},
		"no zero in +1": {time.Time{}.In(time.FixedZone("x", 3600)), nothing},
	} {
		outcome, err := j.Run(ctx, c.tick, c.f)
		wantErr(t, what, err, session.ErrInvalid)
		tried, err := j.TryRun(ctx, c.tick, c.f)
		wantErr(t, what, err, session.ErrInvalid)
		if outcome != schedule.NotRun || tried != schedule.NotRun {
			t.Error(what, outcome, tried)
		}
	}
	_, err = j.Run(ctx, noon, nothing)
	wantErr(t, "Run with a context that has ended", err, context.Canceled)
}

// A replica that comes late looks, and writes nothing.
func TestCost(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
		n := 0
		a, b := newJob(t, connect(), "/jobs/report"), newJob(t, connect(), "/jobs/report")
		for i := range 3 {
			_, err := a.Run(t.Context(), later(i), count(&n))
			must(t, err)
			server.ResetRequests()
			if outcome, err := b.Run(t.Context(), later(i), count(&n)); outcome != schedule.Done || err != nil {
				t.Error(outcome, err)
			}
			reads := server.Count(zktest.On(zktest.OpGetData, "/jobs"))
			writes := server.Count(zktest.Any(zktest.OpCreate, zktest.OpMulti, zktest.OpDelete))
			if reads != 1 || writes != 0 {
				t.Errorf("%d reads and %d writes", reads, writes)
			}
		}
	})
}
