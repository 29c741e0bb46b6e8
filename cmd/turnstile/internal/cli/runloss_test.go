//go:build linux || darwin || freebsd

package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

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
	holder := start(t, server(t), "run", "--grace", "2s", path, "--", "sh", "-c", j.forever("A"))
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

// A run that is asked for its lock ends the command, which has time to clean up. The lock is free then, and break says so.
func TestRunAsked(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--read", "--write", "--slots 2"} {
		path, j := testserver.Path(t), newJournal(t)
		script := "trap '" + j.once("clean") + "; exit 0' TERM; " + j.once("A") + "; while :; do sleep 0.02; done"
		args := append(append([]string{"run"}, strings.Fields(flags)...), path, "--", "sh", "-c", script)
		holder := start(t, server(t), args...)
		j.await(t, "A")
		asks := start(t, server(t), "break", "--wait", patience.String(), path)
		asks.wait(t, 0)
		asks.prints(t, "Nobody holds "+path+" now")
		holder.wait(t, codeLost)
		j.await(t, "clean")
		holder.prints(t, "somebody asks for the lock", "another client has asked for the lock, and the command was ended")
		if strings.Contains(holder.stderr.String(), "killing") {
			t.Errorf("%s: a command that ended at SIGTERM was killed: %s", flags, holder.stderr)
		}
	}
}

// A waiter that is asked goes on waiting, and gives the lock up when it has it.
func TestRunAskedWhileWaiting(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	first := hold(t, path)
	holder := testserver.Children(t, path)[0]
	waiter := start(t, server(t), "run", path, "--", "sh", "-c", "exec sleep 1000")
	w := newWorld(t, testserver.Server(t).Addr(0), path)
	node := awaitOther(t, w, path, holder)
	p := w.begin(t, "", "break", "--wait", patience.String(), "--node", node, path)
	p.prints(t, "Asked to give the lock up")
	call(t.Context(), []string{"TURNSTILE_ZK=" + server(t)}, "break", "--wait", patience.String(), path).want(t, 0)
	first.wait(t, codeLost)
	waiter.wait(t, codeLost)
	p.wait(t, 0)
}

// The name of a holder that was asked in vain comes back, also if a signal ends the wait, or break is killed.
func TestBreakInVainRestores(t *testing.T) {
	w := newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t))
	const node = "l/" + uuidA + "lock-0000000000"
	w.own(t, node, dataA)
	data := func() string {
		got, _, err := w.admin.Get(w.top + "/" + node)
		expect.NoError(t, err)
		return string(got)
	}
	w.call(t.Context(), "break", "--wait", "2s", w.top+"/l").want(t, codeBusy, "still ")
	if got := data(); got != dataA {
		t.Errorf("the data is %q after a wait", got)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := start(t, w.addr, "break", w.top+"/l")
		zktest.Eventually(t, patience, "the request", func() bool { return data() == queue.RevokeMessage })
		p.signal(t, sig)
		<-p.ended
		zktest.Eventually(t, patience, "the name after "+sig.String(), func() bool { return data() == dataA })
	}
}
