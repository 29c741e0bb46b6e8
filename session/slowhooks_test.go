package session_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A slow hook of each request in flight runs beside the others when the manager is closed, not one after the other.
func TestSlowHooksAtClose(t *testing.T) {
	const requests, slow = 60, 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var ended atomic.Int64
		m, s := virtually(t, "h:1", srv.Dialer(), session.WithTrace(session.Trace{
			Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
				return ctx, func(error) {
					if r.Op == "create" {
						time.Sleep(slow)
						ended.Add(1)
					}
				}
			}}))
		held := srv.HoldReply(zktest.Any(zktest.OpCreate))
		defer held.Release()
		var all sync.WaitGroup
		for i := range requests {
			all.Go(func() { _, _ = makeNode(t.Context(), s, fmt.Sprint("/n", i), nil) })
		}
		synctest.Wait()
		began := time.Now()
		_ = m.Close()
		if took := time.Since(began); took > 2*time.Second || ended.Load() != requests {
			t.Errorf("Close took %v, and %d of %d hooks have ended", took, ended.Load(), requests)
		}
		all.Wait()
	})
}
