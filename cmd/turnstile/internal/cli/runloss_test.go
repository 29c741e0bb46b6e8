//go:build linux || darwin || freebsd

package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A command that ends at SIGTERM has time for that. The status tells of the loss all the same.
func TestRunLeaseRunsOutGently(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	proxy := testserver.Proxy(t)
	// The grace period is long enough for a busy machine.
	holder := start(t, proxy.Addr(), "run", "--timeout", "20s", "--grace", "5s", path, "--", "sh", "-c",
		"trap '"+j.once("term")+"; exit 0' TERM; "+j.once("A")+"; while :; do sleep 0.02; done")
	j.await(t, "A")
	proxy.Blackhole(zktest.Both)
	holder.wait(t, codeLost)
	j.await(t, "term")
	if strings.Contains(holder.stderr.String(), "killing") {
		t.Errorf("a command that ended at SIGTERM was killed: %s", holder.stderr)
	}
}

// If the command ends while the servers are away, its status is turnstile's.
func TestRunReleaseWithoutServers(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	proxy := testserver.Proxy(t)
	holder := start(t, proxy.Addr(), "run", path, "--", "sh", "-c",
		"trap 'exit 3' TERM; "+j.once("A")+"; while :; do sleep 0.02; done")
	j.await(t, "A")
	proxy.Blackhole(zktest.Both)
	holder.signal(t, syscall.SIGTERM)
	holder.wait(t, 3)
	holder.prints(t, "not confirmed") // the lock is not free yet
}

// If somebody deletes the lock's node, the command gets SIGTERM, and SIGKILL after the grace period.
func TestRunNodeDeleted(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), "run", "--timeout", "10s", "--grace", "500ms", path, "--", "sh", "-c", j.forever("A"))
	j.await(t, "a")
	testserver.Delete(t, path, testserver.Children(t, path)[0])
	holder.wait(t, codeLost)
	holder.prints(t, "its node was deleted", "ending the command", "killing")
}

// A turnstile that is stopped for a moment keeps its lock and its command.
func TestRunStoppedBriefly(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), "run", path, "--", "sh", "-c",
		"trap '"+j.once("usr1")+"' USR1; trap 'exit 4' TERM; "+j.once("A")+"; while :; do sleep 0.02; done")
	j.await(t, "A")
	for range 3 {
		holder.signal(t, syscall.SIGSTOP)
		holder.signal(t, syscall.SIGUSR1)
		holder.signal(t, syscall.SIGCONT)
	}
	j.await(t, "usr1")
	holder.signal(t, syscall.SIGTERM)
	holder.wait(t, 4)
}
