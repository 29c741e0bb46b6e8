//go:build linux || darwin || freebsd

package cli

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// patientServer starts a server that grants no session timeout of less than 20 minutes. So what comes free in a test does
// not do so because a session has timed out.
func patientServer(t *testing.T) (addr string, w *world) {
	t.Helper()
	srv := zktest.Start(t, zktest.TickTime(10*time.Minute))
	return srv.Addr(), newWorld(t, srv.Addr(), "/test")
}

// contenders returns how many contenders are at a path.
func (w *world) contenders(path string) int {
	names, _, _ := w.admin.Children(path)
	return len(names)
}

// A waiter that was killed leaves no contender.
func TestRunKilledWaiterLeaves(t *testing.T) {
	t.Parallel()
	addr, w := patientServer(t)
	const path = "/test/lock"
	w.own(t, "lock/"+uuidA+"lock-0000000000", dataA)
	waiter := start(t, addr, "run", path, "--", "true")
	zktest.Eventually(t, patience, "a waiter", func() bool { return w.contenders(path) == 2 })
	waiter.signal(t, syscall.SIGKILL)
	zktest.Eventually(t, patience, "the end of the waiter", func() bool { return w.contenders(path) == 1 })
}

// The guard does so over TLS too, with the identities, if the server that turnstile was connected to has gone, and if the
// session was opened in place of one that was lost.
func TestRunKilledFreesThrough(t *testing.T) {
	t.Parallel()
	addr, w := patientServer(t)
	secure, ca, key := startTLS(t, addr)
	const path = "/test/lock"
	t.Run("TLS", func(t *testing.T) {
		j := newJournal(t)
		p := start(t, secure, "run", "--cacert", ca, "--cert", key, "--key", key,
			"--auth", "digest:user:secret", "/tls/lock", "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		j.await(t, "A")
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders("/tls/lock") == 0 })
	})
	t.Run("another server", func(t *testing.T) {
		j := newJournal(t)
		one, two := zktest.StartProxy(t, addr), zktest.StartProxy(t, addr)
		p := start(t, one.Addr()+","+two.Addr(), "run", path, "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		j.await(t, "A")
		gone := one
		if len(one.Requests()) == 0 || len(two.Requests()) > len(one.Requests()) {
			gone = two
		}
		gone.Refuse(true)
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders(path) == 0 })
	})
	t.Run("another session", func(t *testing.T) {
		j := newJournal(t)
		w.own(t, "lock/"+uuidA+"lock-0000000000", dataA)
		proxy := zktest.StartProxy(t, addr)
		p := start(t, proxy.Addr(), "run", path, "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		waiter := awaitOther(t, w, path, uuidA+"lock-0000000000")
		for _, id := range proxy.Sessions() {
			if err := proxy.Expire(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		awaitOther(t, w, path, uuidA+"lock-0000000000", waiter)
		w.remove(t, "lock/"+uuidA+"lock-0000000000")
		j.await(t, "A")
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders(path) == 0 })
	})
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
