package schedule_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
)

// The hook is told of each tick what has become of it, also of a function that panics.
func TestHook(t *testing.T) {
	inBubble(t, func(t *world) {
		var told []string
		m := t.connect(session.WithTrace(session.Trace{Job: func(_ context.Context, j session.JobInfo) {
			if j.Outcome == "" {
				told = append(told, "new")
				return
			}
			if j.Path != path || j.Name != "nightly" || j.Chroot != "/" {
				t.Errorf("%+v", j)
			}
			text := j.Tick.Sub(noon).String() + " " + j.Outcome
			if j.Ticks != 1 {
				text += ", several"
			}
			if j.Err != nil {
				text += ", with an error"
			}
			told = append(told, text)
		}}))
		j, ctx := t.jobOf(m, schedule.WithName("nightly"), once), t.Context()
		_, _ = j.Run(ctx, noon, t.at(0))
		_, _ = j.Run(ctx, noon, t.at(0))
		_, _ = j.TryRun(ctx, later(1), func(context.Context) error {
			_, _ = j.TryRun(ctx, later(2), t.at(2))
			return errWork
		})
		_, _ = j.Run(ctx, later(1), t.at(1))
		_, _ = j.Run(ctx, noon, t.at(0))
		_, _ = j.Run(ctx, noon.Add(1), t.at(0))
		func() {
			defer func() { _ = recover() }()
			_, _ = j.Run(ctx, later(2), func(context.Context) error { panic("out of paper") })
		}()
		_, _ = j.CatchUp(ctx, later(4), hourly, t.work)
		want := []string{
			"new", "0s ran", "0s done", "2h0m0s busy", "1h0m0s ran, with an error", "1h0m0s tries_used_up", "0s overtaken",
			"1ns not_run, with an error", "2h0m0s ran, with an error",
			"3h0m0s ran", "4h0m0s ran", "2h0m0s skipped, with an error",
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
	})
}
