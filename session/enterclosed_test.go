package session_test

import (
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// An Enter whose create has an answer that settles nothing, and whose listing is under way when the manager is closed, says
// that the manager is closed. The answer to the create is no reason to try again.
func TestEnterEndsWithClose(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, srv := virtualEntry(t)
			srv.Throttle(func(r zktest.Request) bool { return r.Op == zktest.OpCreate })
			listing := srv.HoldReply(zktest.On(zktest.OpGetChildren2, e.d))
			got := e.begin(t.Context(), e.form(fixed))
			within(t, listing.Hit(), "the answer to the listing")
			synctest.Wait()
			go func() { _ = e.m.Close() }()
			wantErr(t, "Enter", within(t, got, "Enter").err, session.ErrClosed)
			listing.Release()
		})
	}
}
