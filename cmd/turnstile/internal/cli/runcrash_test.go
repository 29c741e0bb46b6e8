//go:build linux || darwin || freebsd

package cli

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
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
	freed := func(t *testing.T, p *process, path string) {
		t.Helper()
		if n := w.contenders(path); n != 1 {
			t.Errorf("%d contenders, want the holder", n)
		}
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders(path) == 0 })
	}
	t.Run("TLS", func(t *testing.T) {
		list := append(zk.DigestACL(zk.PermAll, "user", "secret"), zk.WorldACL(zk.PermRead)...)
		expect.NoError(t, expect.Err(w.admin.Create("/tls", nil, 0, list)))
		freed(t, holdAt(t, secure, "--cacert", ca, "--cert", key, "--key", key, "--auth", "digest:user:secret", "/tls/lock"), "/tls/lock")
	})
	t.Run("another server", func(t *testing.T) {
		one, two := zktest.StartProxy(t, addr), zktest.StartProxy(t, addr)
		p := holdAt(t, one.Addr()+","+two.Addr(), path)
		gone := one
		if len(one.Requests()) == 0 || len(two.Requests()) > len(one.Requests()) {
			gone = two
		}
		gone.Refuse(true)
		freed(t, p, path)
	})
	t.Run("another session", func(t *testing.T) {
		j := newJournal(t)
		w.own(t, "lock/"+uuidA+"lock-0000000000", dataA)
		proxy := zktest.StartProxy(t, addr)
		p := start(t, proxy.Addr(), "run", path, "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		waiter := awaitOther(t, w, path, uuidA+"lock-0000000000")
		expire(t, proxy)
		awaitOther(t, w, path, uuidA+"lock-0000000000", waiter)
		w.remove(t, "lock/"+uuidA+"lock-0000000000")
		j.await(t, "A")
		freed(t, p, path)
	})
}

// expire has the servers end all sessions of the proxy.
func expire(t *testing.T, proxy *zktest.Proxy) {
	t.Helper()
	for _, id := range proxy.Sessions() {
		if err := proxy.Expire(t.Context(), id); err != nil {
			t.Error(err)
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
