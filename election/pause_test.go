//go:build linux

package election_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/pausetest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
)

// A leader whose process was paused for longer than its session lives sees at its first look that it leads no
// more.
func TestPausedLeader(t *testing.T) {
	pausetest.Run(t, func(server, dir string) {
		m := testserver.Connect(t, server, session.WithTimeout(pausetest.Timeout))
		e, err := election.New(m, dir)
		must(t, err)
		err = e.Run(t.Context(), func(ctx context.Context) error {
			pausetest.Pause(t)
			leads, err := e.IsLeader(), ctx.Err()
			if err == nil || leads {
				t.Errorf("after the pause: error %v of the context, IsLeader %v", err, leads)
			}
			wantErr(t, "cause", context.Cause(ctx), session.ErrLost)
			m.Close()
			return nil
		})
		must(t, err)
	})
}
