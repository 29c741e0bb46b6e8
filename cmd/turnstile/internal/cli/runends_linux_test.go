package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// holding is a turnstile whose command works.
type holding struct {
	*process
	proxy *zktest.Proxy // of the servers
}

// sends sends a signal to turnstile, and sendsGuard to its guard.
func sends(sig syscall.Signal) func(*testing.T, holding) {
	return func(_ *testing.T, h holding) { _ = h.cmd.Process.Signal(sig) } // if it has not ended yet
}

func sendsGuard(signals ...syscall.Signal) func(*testing.T, holding) {
	return func(t *testing.T, h holding) {
		guard := h.awaitChild(t, guardName)
		for _, sig := range signals {
			if err := syscall.Kill(guard, sig); err != nil {
				t.Error(err)
			}
		}
	}
}

// strays are shell commands that run another in a process group or session that is not the command's.
var strays = map[string]string{
	"timeout":          `timeout 1000 sh -c "$WORK"; true`,
	"job control":      `set -m; sh -c "$WORK" & wait`,
	"session":          `setsid sh -c "$WORK" & wait`,
	"daemon":           `(setsid sh -c "trap '' HUP; (eval \"$WORK\") &" &); sleep 1000`,
	"terminal":         `script -qc "$WORK" /dev/null; true`,
	"deaf to SIGTERM":  `setsid sh -c "trap '' TERM; $WORK" & wait`,
	"the command ends": `setsid sh -c "$WORK" & while ! grep -q a $JOURNAL; do sleep 0.02; done`,
	// A process whose main thread has ended looks like a zombie, and works on.
	"main thread": threadEnv + `=$JOURNAL setsid ` + os.Args[0] + ` & while ! grep -qs a $JOURNAL; do sleep 0.02; done`,
}

// Whatever happens to turnstile, its guard or the servers, the command and all of its descendants have ended when the next
// holder's command begins, also those that ignore SIGTERM and have left the command's group.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	type row struct {
		script func(j journal) string // nil: deaf
		event  func(*testing.T, holding)
		code   int // -1: turnstile is killed; -2: any
		says   string
		long   bool
	}
	deaf := func(j journal) string { return "setsid sh -c \"" + j.loop("far") + "\" & " + j.forever("A") }
	rows := map[string]row{
		"no server answers":      {event: func(_ *testing.T, h holding) { h.proxy.Blackhole(zktest.Both) }, code: codeLost, says: "killing", long: true},
		"turnstile is stopped":   {event: sends(syscall.SIGSTOP), code: codeLost, long: true},
		"turnstile is killed":    {event: sends(syscall.SIGKILL), code: -1},
		"the guard is killed":    {event: sendsGuard(syscall.SIGKILL), code: codeFailed, says: "guard was killed"},
		"a stopped guard":        {event: func(t *testing.T, h holding) { sendsGuard(syscall.SIGSTOP)(t, h); sends(syscall.SIGKILL)(t, h) }, code: -1},
		"the session is expired": {event: func(t *testing.T, h holding) { expire(t, h.proxy) }, code: codeLost, says: "expired by the server"},
		"the command ends":       {script: func(j journal) string { return "(" + j.forever("A") + ") >/dev/null 2>&1 & sleep 0.2; exit 5" }, code: 5, says: "left processes"},
		"turnstile is stopped at the start": {script: func(j journal) string {
			return "kill -STOP $(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status); " + j.forever("A")
		}, code: codeLost, long: true},
		"a run in a run": {script: func(j journal) string {
			return os.Args[0] + " run " + testserver.Path(t) + ` -- sh -c "` + j.loop("a") + `"`
		}, event: sends(syscall.SIGKILL), code: -1},
	}
	for how, script := range strays {
		for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP} {
			rows[how+"/"+name] = row{event: sends(sig), code: -2, long: sig == syscall.SIGSTOP, script: func(j journal) string {
				return "export JOURNAL=" + string(j) + " WORK='" + j.loop("a") + "' </dev/null >/dev/null; " + script
			}}
		}
	}
	for what, r := range rows {
		t.Run(what, func(t *testing.T) {
			if r.long {
				longtest.Only(t)
			}
			if _, err := exec.LookPath("script"); err != nil && strings.HasPrefix(what, "terminal") {
				testserver.Missing(t, err)
			}
			t.Parallel()
			path, j := testserver.Path(t), newJournal(t)
			if r.script == nil {
				r.script = deaf
			}
			h := holding{proxy: testserver.Proxy(t)}
			h.process = start(t, h.proxy.Addr(), "run", "--timeout", "10s", "--grace", "500ms", path, "--", "bash", "-c", r.script(j))
			zktest.Eventually(t, patience, "the command", func() bool {
				return len(j.lines(t)) > 0 && (r.event == nil || j.last(t, "a") >= 0)
			})
			rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 0.5")
			if r.event != nil {
				r.event(t, h)
			}
			rival.wait(t, 0)
			_ = h.cmd.Process.Signal(syscall.SIGCONT)
			if <-h.ended; r.code != -2 && h.cmd.ProcessState.ExitCode() != r.code || !strings.Contains(h.stderr.String(), r.says) {
				t.Errorf("%v, want status %d; stderr %q", h.cmd.ProcessState, r.code, h.stderr)
			}
			for _, word := range []string{"A", "a", "far"} {
				if at, end := j.last(t, word), j.last(t, "B"); at > end {
					t.Errorf("%s has worked after the next holder", word)
				}
			}
		})
	}
}

// If turnstile is stopped between the grant of the lock and the start of the command, and goes on after
// the lease, the command does not start beside the next holder. It may start after that: turnstile may not have noticed yet
// that it had the lock.
func TestRunStoppedBeforeStart(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), "run", "--timeout", "10s", "--grace", "1s", path, "--", "sh", "-c", j.forever("A"))
	testserver.WaitChildren(t, path, 1)
	holder.signal(t, syscall.SIGSTOP)
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 2; "+j.once("C"))
	j.await(t, "B")
	holder.signal(t, syscall.SIGCONT)
	rival.wait(t, 0)
	for _, line := range j.lines(t)[j.last(t, "B"):j.last(t, "C")] {
		if line != "B" {
			t.Fatalf("the command has worked beside the next holder: %q", j.lines(t))
		}
	}
}

// The signals that end a command end one that is stopped, too.
func TestRunStoppedCommandEnds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", "echo $$ > "+file+"; kill -STOP $$; exec sleep 1000")
	pid := pidOf(t, file)
	zktest.Eventually(t, patience, "a command that is stopped", func() bool { return stateOf(pid) == "T" })
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 128+int(syscall.SIGTERM))
}

// The guard is the parent of processes whose own parent has ended. It waits for them when they end.
func TestRunReaps(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8 9; do (true &); (setsid true &); done; "+j.once("A")+"; exec sleep 1000")
	j.await(t, "A")
	guard := p.awaitChild(t, guardName)
	zktest.Eventually(t, patience, "the end of all dead processes", func() bool {
		dead, _ := exec.Command("ps", "--no-headers", "--ppid", fmt.Sprint(guard), "-o", "stat").Output()
		return len(dead) > 0 && !strings.Contains(string(dead), "Z")
	})
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 143)
}

// threadEnv is set in processes that add the word a to a journal again and again, in a thread that is not the main one. The
// main one has ended.
const threadEnv = "TURNSTILE_TEST_THREAD"

func init() {
	name := os.Getenv(threadEnv)
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			_, _ = file.WriteString("a\n")
		}
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // an init runs in the main thread
}
