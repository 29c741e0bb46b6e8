//go:build linux || darwin || freebsd

package cli

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

func server(t *testing.T) string {
	t.Helper()
	return testserver.Server(t).ConnectString()
}

func TestRunUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run":                                    "want one path",
		"run /a":                                 "want one path",
		"run /a true":                            "want one path",
		"run -- true":                            "want one path",
		"run /a /b -- true":                      "want one path",
		"run /a --":                              "no command",
		"run a -- true":                          "does not begin with a slash",
		"run / -- true":                          "directory of its own",
		"run /zookeeper/a -- true":               "ZooKeeper's own",
		"run --read --write /a -- true":          "none of the others can be",
		"run --read --slots 2 /a -- true":        "none of the others can be",
		"run --slots 0 /a -- true":               "--slots 0",
		"run --grace -1s /a -- true":             "--grace -1s",
		"run --label a\tb /a -- true":            "--label",
		"run --wait -1s /a -- true":              "--wait -1s",
		"run --busy-status 256 /a -- true":       "--busy-status 256",
		"run --once soon /a -- true":             "--once",
		"run --once 0h /a -- true":               "not positive",
		"run --once 1h --read /a -- true":        "none of the others can be",
		"run --once 1h --slots 2 /a -- true":     "none of the others can be",
		"run --max-tries 2 /a -- true":           "and --once",
		"run --once 1h --max-tries 0 /a -- true": "--max-tries 0",
		"run --timeout 0s /a -- true":            "session timeout",
		"run --auth digest /a -- true":           "scheme:credentials",
		"run --auth-file /nonsense/a /a -- true": "--auth-file",
		"run --cacert /nonsense/a /a -- true":    "--cacert",
	} {
		// No server listens there. So an attempt to connect would be another error.
		call(t.Context(), []string{"TURNSTILE_ZK=127.0.0.1:1"}, strings.Split(args, " ")...).want(t, codeUsage, want)
	}
	call(t.Context(), nil, "run", "/a", "--", "/nonsense").want(t, codeNoCommand)
	call(t.Context(), nil, "run", "/a", "--", "/").want(t, codeCannotRun)
}

// The exit status, streams and environment are the command's.
func TestRunStatus(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		start(t, server(t), "run", path, "--", "sh", "-c", script).wait(t, want)
	}
	start(t, server(t), "run", "--timeout", "10s", "--grace", "3s", path, "--", "true").wait(t, codeUsage)
	p := start(t, server(t), "run", path, "--", "sh", "-c", `echo "$TURNSTILE_PATH $TURNSTILE_TOKEN"; echo err >&2`)
	p.wait(t, 0)
	var token int64
	if _, err := fmt.Sscanf(p.stdout.String(), path+" %d\n", &token); err != nil || token <= 0 {
		t.Errorf("stdout %q: want the path and a token", p.stdout)
	}
	if got := p.stderr.String(); got != "err\n" {
		t.Errorf("stderr %q, want only the command's", got)
	}
	if got := testserver.Children(t, path); len(got) > 0 {
		t.Errorf("contenders are left: %q", got)
	}
}

// --wait gives up while another process has the lock.
func TestRunBusy(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := hold(t, path)
	try := start(t, server(t), "run", "--wait=0", path, "--", "true")
	try.wait(t, codeBusy)
	try.prints(t, fmt.Sprintf("%s is held by %s, in the queue for ", path, holder.contender(t)))
	start(t, server(t), "run", "--slots", "2", path, "--", "true").wait(t, codeFailed)
	if n := len(testserver.Children(t, path)); n != 1 {
		t.Errorf("%d contenders, want the holder", n)
	}
	waiter := start(t, server(t), "run", "--wait", "1h", path, "--", "sh", "-c", j.once("B"))
	testserver.WaitChildren(t, path, 2)
	holder.signal(t, syscall.SIGTERM)
	holder.wait(t, 143)
	waiter.wait(t, 0)
	j.await(t, "B")
}

// A signal ends the wait, and leaves no contender.
func TestRunInterruptedWait(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	hold(t, path)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		waiter := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B"))
		testserver.WaitChildren(t, path, 2)
		waiter.signal(t, sig)
		waiter.wait(t, 128+int(sig))
		testserver.WaitChildren(t, path, 1)
		if text := waiter.stderr.String(); strings.Contains(text, "goroutine") {
			t.Errorf("%v: stderr %s", sig, text)
		}
	}
	if j.last(t, "B") >= 0 {
		t.Error("a command has run without the lock")
	}
}

// Readers share a lock, and a writer excludes them. A semaphore has as many leases as --slots says.
func TestRunKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		held    []string // by others
		refused map[string]int
	}{
		{[]string{"--read", "--read"}, map[string]int{"--write": codeBusy}},
		{[]string{"--write"}, map[string]int{"--read": codeBusy}},
		{[]string{"--slots=2", "--slots=2"}, map[string]int{"--slots=2": codeBusy, "--slots=3": codeFailed}},
	} {
		path := testserver.Path(t)
		for _, flag := range c.held {
			hold(t, flag, path)
		}
		for flag, code := range c.refused {
			start(t, server(t), "run", flag, "--wait=0", path, "--", "true").wait(t, code)
		}
	}
}

// Signals go to all processes of the command's group, and the command decides what they do.
func TestRunSignals(t *testing.T) {
	t.Parallel()
	names := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}
	j := newJournal(t)
	var parent, child strings.Builder
	for name := range names {
		fmt.Fprintf(&parent, "trap '%s' %s; ", j.once("parent-"+name), name)
		fmt.Fprintf(&child, "trap '%s' %s; ", j.once("child-"+name), name)
	}
	loop := "; while :; do sleep 0.02; done"
	script := "(" + child.String() + j.once("child") + loop + ") & " + parent.String() + j.once("parent") + loop
	p := start(t, server(t), "run", testserver.Path(t), "--", "bash", "-c", script)
	j.await(t, "parent")
	j.await(t, "child")
	for name, sig := range names {
		if name == "INT" || name == "QUIT" {
			continue // a shell has its background processes ignore these
		}
		p.signal(t, sig)
		j.await(t, "parent-"+name)
		j.await(t, "child-"+name)
	}
	for _, name := range []string{"INT", "QUIT"} {
		p.signal(t, names[name])
		j.await(t, "parent-"+name)
	}
	if !p.running() {
		t.Error("turnstile has ended although the command goes on")
	}
}

// A run inside another one gives its command its own path and token, and no others beside them, and no tick.
func TestRunNestedToken(t *testing.T) {
	t.Parallel()
	outer, inner := testserver.Path(t), testserver.Path(t)
	p := start(t, server(t), "run", "--once", tick, outer, "--", os.Args[0], "run", inner, "--", "env")
	p.wait(t, 0)
	if got := p.stdout.String(); strings.Contains(got, "TURNSTILE_TICK=") || strings.Count(got, "TURNSTILE_TOKEN=") != 1 || strings.Count(got, "TURNSTILE_PATH=") != 1 ||
		!strings.Contains(got, "TURNSTILE_PATH="+inner+"\n") {
		t.Errorf("the environment is %s", got)
	}
}
