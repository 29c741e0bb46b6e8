//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// shortLease are the flags of a holder whose lease can run out in a test.
func shortLease(path, script string) []string {
	return []string{"run", "--timeout", "10s", "--grace", "1s", path, "--", "sh", "-c", script}
}

// onBoth runs a test with the in-process server and with a real one.
func onBoth(t *testing.T, test func(t *testing.T, server string)) {
	longtest.Only(t)
	t.Parallel()
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		srv := zktest.Start(t, zktest.TickTime(200*time.Millisecond))
		test(t, srv.ConnectString())
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, server(t))
	})
}

// If no server answers, the command's processes are dead before another client holds the lock, even
// if they ignore SIGTERM.
func TestRunLeaseRunsOut(t *testing.T) {
	onBoth(t, func(t *testing.T, server string) {
		path, j := testserver.Path(t), newJournal(t)
		proxy := zktest.StartProxy(t, server)
		holder := start(t, proxy.Addr(), shortLease(path, j.forever("A"))...)
		j.await(t, "a")
		rival := start(t, server, "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
		proxy.Blackhole(zktest.Both)
		rival.wait(t, 0)
		holder.wait(t, codeLost)
		wantLast(t, j, "B", "A", "a")
		if !strings.Contains(holder.stderr.String(), "killing") {
			t.Errorf("stderr %q does not tell that the processes were killed", holder.stderr)
		}
	})
}

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
	if !strings.Contains(holder.stderr.String(), "not confirmed") {
		t.Errorf("stderr %q does not tell that the lock is not free yet", holder.stderr)
	}
}

// If somebody deletes the lock's node, the command gets SIGTERM, and SIGKILL after the grace period.
func TestRunNodeDeleted(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), "run", "--timeout", "10s", "--grace", "500ms", path, "--", "sh", "-c", j.forever("A"))
	j.await(t, "a")
	testserver.Delete(t, path, testserver.Children(t, path)[0])
	holder.wait(t, codeLost)
	for _, want := range []string{"its node was deleted", "ending the command", "killing"} {
		if !strings.Contains(holder.stderr.String(), want) {
			t.Errorf("stderr %q does not contain %q", holder.stderr, want)
		}
	}
}

// If the servers have expired the session, the command is killed.
func TestRunSessionExpired(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	proxy := testserver.Proxy(t)
	holder := start(t, proxy.Addr(), "run", path, "--", "sh", "-c", j.forever("A"))
	j.await(t, "a")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, id := range proxy.Sessions() {
		if err := proxy.Expire(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	holder.wait(t, codeLost)
	if !strings.Contains(holder.stderr.String(), "expired by the server") {
		t.Errorf("stderr %q does not contain the cause", holder.stderr)
	}
}

// withPids is a command of two processes that write their ids into files, and neither ends at SIGTERM.
func withPids(t *testing.T) (script string, pids func() []int) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	const forever = "while :; do sleep 0.02; done"
	script = fmt.Sprintf("trap '' TERM; (sh -c 'echo $PPID' > %s; %s) & echo $$ > %s; %s", one, forever, two, forever)
	return script, func() []int { return []int{pidOf(t, one), pidOf(t, two)} }
}

func waitGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		zktest.Eventually(t, patience, fmt.Sprintf("the end of process %d", pid), func() bool { return gone(pid) })
	}
}

// A turnstile that is killed takes all processes of its command with it, also if that is a turnstile.
func TestRunNestedKilled(t *testing.T) {
	t.Parallel()
	outer, inner := testserver.Path(t), testserver.Path(t)
	script, pids := withPids(t)
	exe := start(t, server(t), "version").cmd.Path
	holder := start(t, server(t), "run", outer, "--", exe, "run", inner, "--", "sh", "-c", script)
	all := pids()
	holder.signal(t, syscall.SIGKILL)
	waitGone(t, all)
}

// If turnstile is stopped for longer than the lease, the command is dead before another client holds
// the lock.
func TestRunStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, server string) {
		path, j := testserver.Path(t), newJournal(t)
		holder := start(t, server, shortLease(path, j.forever("A"))...)
		j.await(t, "a")
		rival := start(t, server, "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
		holder.signal(t, syscall.SIGSTOP)
		rival.wait(t, 0)
		wantLast(t, j, "B", "A", "a")
		holder.signal(t, syscall.SIGCONT)
		holder.wait(t, codeLost)
		wantLast(t, j, "B", "A", "a")
	})
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

// A command that is stopped is ended with the lease like any other.
func TestRunCommandStopped(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path := testserver.Path(t)
	script, pids := withPids(t)
	proxy := testserver.Proxy(t)
	holder := start(t, proxy.Addr(), shortLease(path, script)...)
	all := pids()
	for _, pid := range all {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Blackhole(zktest.Both)
	holder.wait(t, codeLost)
	waitGone(t, all)
}
