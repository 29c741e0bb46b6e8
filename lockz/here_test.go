package lockz_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/lockz"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A contender is of this process if its session is, and not if its node only has the same host name and process
// id. Processes in several containers often have the same ones.
func TestHere(t *testing.T) {
	addr := testserver.Server(t).Addr(0)
	for _, c := range []struct {
		what     string
		recorded bool // the holder's manager
	}{
		{"another process of the same name", false},
		{"another manager of this process", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := testserver.Path(t)
			other, m := testserver.Connect(t, addr), testserver.Connect(t, addr)
			managers := []*session.Manager{m}
			if c.recorded {
				managers = append(managers, other)
			}
			page := lockz.Handler(managers...)
			lock(t, mutex(t, other, dir), "") // with the identity of this process
			begin(t, mutex(t, m, dir).Lock)
			var behind *lockz.Behind
			zktest.Eventually(t, testserver.Patience, "a waiter that knows who is ahead", func() bool {
				waits := pageOf(t, page).Managers[0].Waits
				if len(waits) == 1 {
					behind = waits[0].Behind
				}
				return behind != nil && behind.ID != ""
			})
			if behind.Here != c.recorded || behind.ID != pageOf(t, page).ID {
				t.Errorf("%+v, want here %v", behind, c.recorded)
			}
		})
	}
}
