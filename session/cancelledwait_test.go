package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A wait that was cancelled leaves no watch at the servers. (A test of package zklock, if session_test may not use it.)
func TestCancelledWaitLeavesNoWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		holder, _ := virtually(t, "h:1", srv.Dialer())
		waiter, _ := virtually(t, "h:1", srv.Dialer())
		held, err := zklock.New(holder, "/l")
		must(t, err)
		must(t, held.Lock(t.Context()))
		waits, err := zklock.New(waiter, "/l")
		must(t, err)
		watches := func() string {
			time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble
			metrics, err := srv.Metrics()
			must(t, err)
			return metrics["zk_watch_count"]
		}
		before := watches()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			wantErr(t, "Lock", waits.Lock(ctx), context.DeadlineExceeded)
			cancel()
		}
		if after := watches(); after != before {
			t.Errorf("%s watches after 20 cancelled waits, %s before", after, before)
		}
		must(t, held.Unlock())
	})
}
