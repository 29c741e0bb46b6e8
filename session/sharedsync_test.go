package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/zktest"
)

// All whose replies were lost with a connection share a sync.
func TestSharedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 0)
		(*core.Manager)(b.m).SetWindow(-1)
		b.Refuse(true)
		b.Disconnect()
		synctest.Wait()
		b.ResetRequests()
		errs := make(chan error, 20)
		gone, cancel := context.WithCancel(t.Context())
		for i := range 20 {
			ctx := t.Context()
			if i%5 == 0 { // the first too, which would send it
				ctx = gone
			}
			go func() { errs <- (*core.Session)(b.s).SharedSync(ctx, "/", 0) }()
			synctest.Wait()
		}
		cancel()
		for range 4 {
			wantErr(t, "sync", <-errs, context.Canceled)
		}
		b.Refuse(false)
		for range 16 {
			must(t, <-errs)
		}
		if n := b.Count(zktest.On(zktest.OpSync, "")); n != 1 {
			t.Errorf("%d syncs", n)
		}
		must(t, (*core.Session)(b.s).SharedSync(t.Context(), "/", 0))
		if n := b.Count(zktest.On(zktest.OpSync, "")); n != 1 {
			t.Errorf("%d syncs, when the first was enough", n)
		}
		// A sync does not serve a caller whose reply was lost later, or another connection.
		after := int64(1)
		must(t, (*core.Session)(b.s).SharedSync(t.Context(), "/", after))
		b.Disconnect()
		time.Sleep(time.Second)
		must(t, (*core.Session)(b.s).SharedSync(t.Context(), "/", after))
		if n := b.Count(zktest.On(zktest.OpSync, "")); n != 3 {
			t.Errorf("%d syncs, when three were needed", n)
		}
		held := b.HoldReply(zktest.On(zktest.OpSync, ""))
		b.ResetRequests()
		for after := range int64(2) {
			go func() { errs <- (*core.Session)(b.s).SharedSync(t.Context(), "/", 3+after) }()
			synctest.Wait()
		}
		if n := b.Count(zktest.On(zktest.OpSync, "")); n != 2 {
			t.Errorf("%d syncs of two callers, one after the other", n)
		}
		held.Release()
		must(t, <-errs)
		must(t, <-errs)
	})
}
