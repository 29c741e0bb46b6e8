package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A Run that is cancelled between its directory and its record leaves no directory that servers keep: before 3.10 they
// remove only containers that have had a child.
func TestCancelledRunLeavesNoDirectory(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect connector) {
		ctx, cancel := context.WithCancel(t.Context())
		m := connect(session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				return ctx, func(err error) {
					if r.Op == "create" && r.Path == "/jobs/new" && err == nil {
						cancel()
					}
				}
			},
		}))
		_, err := newJob(t, m, "/jobs/new").Run(ctx, noon, func(context.Context) error { return nil })
		wantErr(t, "Run", err, context.Canceled)
		time.Sleep(time.Minute)
		testserver.Switch(server).ReapContainers()
		s := testserver.Session(t, m)
		must(t, s.Sync(t.Context(), "/"))
		if children, _, err := s.Children(t.Context(), "/jobs"); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("/jobs is there, with %v: %v", children, err)
		}
	})
}
