package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// A try takes no time, --wait takes its time, also without a server, and the status and the message are the caller's choice.
func TestRunBusyStatus(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	hold(t, path)
	for args, code := range map[string]int{"--wait 0": codeBusy, "--wait=0 --busy-status 0": 0, "--wait 3s --busy-status 75": 75} {
		args := append(append([]string{"run", "--quiet"}, strings.Fields(args)...), path, "--", "true")
		p := start(t, server(t), args...)
		if p.wait(t, code); p.stderr.String() != "" {
			t.Errorf("%v says %q", args, p.stderr)
		}
	}
	began := time.Now()
	p := start(t, "127.0.0.1:1", "run", "--wait", "1s", "--connect-timeout", "1h", path, "--", "true")
	if p.wait(t, codeConnect); time.Since(began) < time.Second {
		t.Errorf("--wait 1s ended after %v", time.Since(began))
	}
}

// A turnstile that waits notices that its guard was killed, and leaves the queue. The guard has a name in ps.
func TestRunGuardKilledWhileWaiting(t *testing.T) {
	t.Parallel()
	path := testserver.Path(t)
	hold(t, path)
	waiter := start(t, server(t), "run", path, "--", "true")
	testserver.WaitChildren(t, path, 2)
	guard := waiter.awaitChild(t, guardName)
	zktest.Eventually(t, patience, "the name of the guard in ps", func() bool {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", guard))
		return strings.TrimSpace(string(comm)) == guardName
	})
	expect.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	waiter.wait(t, codeFailed)
	waiter.prints(t, "the guard of the command was killed while turnstile waited")
	testserver.WaitChildren(t, path, 1)
}

// switches returns how often the main thread of a process, in which a guard works, has waited for something.
func switches(pid int) (n int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
	_, _ = fmt.Sscan(after, &n)
	return n
}

// While nothing happens, the guard sleeps. It wakes up when turnstile tells it that the lock is still held: every eighth of
// the session timeout.
func TestRunIdle(t *testing.T) {
	t.Parallel()
	p := hold(t, "--timeout", "40s", testserver.Path(t))
	guard := p.awaitChild(t, guardName)
	before, began := switches(guard), time.Now()
	zktest.Eventually(t, patience, "three seconds", func() bool { return time.Since(began) > 3*time.Second })
	if n := switches(guard) - before; before == 0 || n > 20 { // it looked ten times a second
		t.Errorf("the guard has woken up %d times in 3s", n)
	}
}

// Commands are found and started as a shell, env and timeout do it. Where env runs a command, turnstile does, and otherwise the
// statuses are the same.
func TestRunFindsLikeEnv(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := os.Mkdir(filepath.Join(dir, "bin"), 0o755)
	for name, text := range map[string]string{
		"with.sh": "#!/bin/sh\necho ran $1\n", "bin/inbin.sh": "#!/bin/sh\necho ran $1\n", "without.sh": "echo ran $1\n",
		"lost.sh": "#!/no/such/interpreter\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "plain"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	usual := os.Getenv("PATH")
	for _, c := range []struct {
		what, path string
		args       []string
	}{
		{"absolute", usual, []string{dir + "/with.sh", "x"}},
		{"dot in PATH", ".:" + usual, []string{"with.sh", "x"}},
		{"empty element of PATH", usual + ":", []string{"with.sh", "x"}},
		{"relative element of PATH", "bin:" + usual, []string{"inbin.sh", "x"}},
		{"no #! line", usual, []string{dir + "/without.sh", "x"}},
		{"no interpreter", usual, []string{dir + "/lost.sh"}},
		{"no PATH", "", []string{"echo", "ran", "x"}},
		{"missing", usual, []string{"no-such-command"}},
		{"not executable", usual, []string{dir + "/plain"}},
		{"a directory", usual, []string{dir}},
	} {
		run := func(name string, args ...string) (int, string) {
			cmd := exec.Command(name, append(args, c.args...)...)
			cmd.Dir = dir
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
			cmd.Env = append(cmd.Env, programEnv+"=1", "TURNSTILE_ZK="+server(t))
			if c.path != "" {
				cmd.Env = append(cmd.Env, "PATH="+c.path)
			}
			out, _ := cmd.CombinedOutput()
			return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out))
		}
		want, said := run("/usr/bin/env")
		got, text := run(os.Args[0], "run", testserver.Path(t), "--")
		if got != want || want == 0 && text != said {
			t.Errorf("%s: env %d %q, turnstile %d %q", c.what, want, said, got, text)
		}
	}
}

// Signals that the caller ignores stay ignored in the command, and systemd's watchdog is not the command's.
func TestRunKeepsIgnored(t *testing.T) {
	t.Parallel()
	for _, sig := range []string{"HUP", "INT", "TERM", "QUIT", "USR1"} {
		script := fmt.Sprintf(`trap '' %s; WATCHDOG_PID=$$ %s run %s -- sh -c 'kill -%[1]s $$; echo "goes on $WATCHDOG_PID"'; exit $?`, sig, os.Args[0], testserver.Path(t))
		p := startCommand(t, server(t), exec.Command("sh", "-c", script))
		if p.wait(t, 0); p.stdout.String() != "goes on \n" {
			t.Errorf("%s: stdout %q", sig, p.stdout)
		}
	}
}

// If the system has no room for another process, the status and the message say so.
func TestRunNoRoom(t *testing.T) {
	for _, err := range []error{syscall.EAGAIN, syscall.ENOMEM} {
		start := cannotStart(&os.PathError{Op: "exec", Path: "/bin/true", Err: err})
		if codeOf(t.Context(), start) != codeNoRoom || !strings.Contains(start.Error(), "ulimit -u") {
			t.Errorf("%v: status %d", start, codeOf(t.Context(), start))
		}
	}
}

// A turnstile, its guard and its command are killed at random moments. No process survives, no two commands work at once,
// and the next holder need not wait for the end of a session: these last for 20 minutes.
func TestRunKilledAtRandom(t *testing.T) {
	longtest.Only(t)
	addr, w := patientServer(t)
	const path = "/test/lock"
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	var waits []time.Duration // from the end of the last process, which has the output too, to the next holder
	for n := range longtest.Pick(3, 150) {
		j := newJournal(t)
		holder := start(t, addr, "run", path, "--", "sh", "-c", "echo $$ > "+string(j)+".pid; ("+j.loop("a")+") & "+j.loop("A"))
		zktest.Eventually(t, patience, "a contender", func() bool { return w.contenders(path) == 1 })
		rival := start(t, addr, "run", path, "--", "sh", "-c", j.once("B")+"; date +%s%N > "+string(j)+".next; sleep 0.1; "+j.once("B"))
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		victim := holder.cmd.Process.Pid
		switch n % 3 {
		case 1:
			victim = holder.awaitChild(t, guardName)
		case 2:
			victim = pidOf(t, string(j)+".pid")
		}
		_ = syscall.Kill(victim, syscall.SIGKILL)
		<-holder.ended
		ended := time.Now()
		rival.wait(t, 0)
		next, err := os.ReadFile(string(j) + ".next")
		nanos, bad := strconv.ParseInt(strings.TrimSpace(string(next)), 10, 64)
		if err = errors.Join(err, bad); err != nil {
			t.Fatal(err)
		}
		waits = append(waits, time.Unix(0, nanos).Sub(ended))
		zktest.Eventually(t, patience, "the end of all processes", func() bool {
			out, _ := exec.Command("pgrep", "-f", string(j)).Output()
			return len(out) == 0
		})
		if lines := j.lines(t); strings.Trim(strings.Join(lines, ""), "Aa") != "BB" || lines[len(lines)-1] != "B" {
			t.Fatalf("round %d: the commands have worked at once: %q", n, lines)
		}
	}
	slices.Sort(waits)
	t.Logf("%d hand-overs: median %v, longest %v", len(waits), waits[len(waits)/2], waits[len(waits)-1])
}
