package otelzk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// The span of a candidate that waits names the leader, by the id that the leader was given and by that of its process. So
// does the error of a wait that ends.
func TestLeaderHasName(t *testing.T) {
	for want, opts := range map[string][]election.Option{
		"10.0.0.7:8080":           {election.WithID("10.0.0.7:8080")},
		`{"host":"10.0.0.7"}`:     {election.WithID(`{"host":"10.0.0.7"}`)},
		queue.Identity():          nil,
		"null":                    {election.WithID("null"), election.WithLeaderLatch()},
		"web-3 in Zürich, rack 4": {election.WithID("web-3 in Zürich, rack 4"), election.WithLeaderLatch()},
	} {
		dir := testserver.Path(t)
		c := newClient(t, dir+"/unused")
		leader := made[*election.Election](t)(election.New(newClient(t, dir+"/unused").m, dir, opts...))
		candidate := made[*election.Election](t)(election.New(c.m, dir, opts...))
		leads, stop := context.WithCancel(patient(t))
		led := background(func() error {
			return leader.Run(leads, func(ctx context.Context) error { <-ctx.Done(); return nil })
		})
		testserver.WaitChildren(t, dir, 1)
		campaign, end := context.WithCancel(patient(t))
		waits := background(func() error {
			return candidate.Run(campaign, func(context.Context) error { return errors.New("it leads") })
		})
		testserver.WaitChildren(t, dir, 2)
		c.knows(t, 2)
		end()
		must(t, <-waits)
		if got := attr(c.started(t, "zklock watch", 0), "zklock.watched.id"); got != want {
			t.Errorf("the span names %q, want %q", got, want)
		}
		stop()
		must(t, <-led)
	}
}
