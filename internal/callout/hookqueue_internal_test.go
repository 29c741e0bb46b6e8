package callout

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/loglines"
)

// The hooks for losses are called in the order in which they were asked for. While one of them blocks, others
// wait, up to the bound. The next one is dropped, and the log tells that once, and at the end how many there
// were.
func TestHookQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := loglines.New()
		q := hookQueue{log: slog.New(r)}
		for outage := range 2 {
			blocks, next := make(chan struct{}), 0
			q.add(func() { <-blocks })
			synctest.Wait() // it is called
			for i := range maxLateHooks {
				q.add(func() {
					if next != i {
						t.Errorf("call %d comes after %d others", i, next)
					}
					next++
				})
			}
			if n := len(r.All()); n != 2*outage {
				t.Fatalf("at the bound, the log has %d lines: %v", n, r.All())
			}
			for range 3 {
				q.add(func() { t.Error("called beyond the bound") })
			}
			if got := r.All(); len(got) != 2*outage+1 || got[2*outage].Level != slog.LevelError {
				t.Fatalf("beyond the bound, the log has %v", got)
			}
			close(blocks)
			got := r.All()
			if next != maxLateHooks || q.waiting != 0 {
				t.Errorf("%d of %d were called; %d wait", next, maxLateHooks, q.waiting)
			}
			if len(got) != 2*outage+2 || !strings.Contains(got[2*outage+1].Text, "dropped=3") {
				t.Errorf("afterwards the log has %v", got)
			}
		}
	})
}
