//go:build linux || darwin || freebsd

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// The session can be replaced by one with a shorter timeout while run waits. A default grace period follows, and one
// that does not fit is an error that says so.
func TestRunShorterSession(t *testing.T) {
	t.Parallel()
	for grace, code := range map[string]int{"": 0, "5s": codeFailed} {
		srv := zktest.Start(t, zktest.TickTime(200*time.Millisecond))
		w := newWorld(t, srv.Addr(), "/test")
		path, j := w.top+"/l", newJournal(t)
		testserver.Switch(srv).SetSessionTimeoutsOf(0, time.Second, 40*time.Second)
		w.own(t, "l/"+uuidA+"lock-0000000000", dataA)
		args := []string{"run", path, "--", "sh", "-c", j.once("B")}
		if grace != "" {
			args = slices.Insert(args, 1, "--grace", grace)
		}
		p := start(t, srv.Addr(), args...)
		waiter := awaitOther(t, w, path, uuidA+"lock-0000000000")
		testserver.Switch(srv).SetSessionTimeoutsOf(0, time.Second, 10*time.Second)
		for _, id := range srv.Sessions() {
			if id != w.admin.SessionID() {
				if err := srv.Expire(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
		}
		awaitOther(t, w, path, uuidA+"lock-0000000000", waiter)
		w.remove(t, "l/"+uuidA+"lock-0000000000")
		p.wait(t, code)
		if started := j.last(t, "B") >= 0; started != (code == 0) {
			t.Errorf("--grace %q: the command was started: %v", grace, started)
		}
		if changed := strings.Contains(p.stderr.String(), "--grace does not fit the session timeout"); changed != (code != 0) {
			t.Errorf("--grace %q: stderr %q", grace, p.stderr)
		}
	}
}

// awaitOther waits for a contender other than some, and returns its name.
func awaitOther(t *testing.T, w *world, path string, than ...string) string {
	t.Helper()
	var other string
	zktest.Eventually(t, patience, "a contender", func() bool {
		names, _, _ := w.admin.Children(path)
		for _, name := range names {
			if !slices.Contains(than, name) {
				other = name
			}
		}
		return other != ""
	})
	return other
}
