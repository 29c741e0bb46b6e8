package cli

import (
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

// strays are shell commands that run another in a process group or session that is not the command's.
var strays = map[string]string{
	"timeout":          `timeout 1000 sh -c "$WORK"; true`,
	"job control":      `set -m; sh -c "$WORK" & wait`,
	"session":          `setsid sh -c "$WORK" & wait`,
	"daemon":           `(setsid sh -c "trap '' HUP; (eval \"$WORK\") &" &); sleep 1000`,
	"terminal":         `script -qc "$WORK" /dev/null; true`,
	"deaf to SIGTERM":  `setsid sh -c "trap '' TERM; $WORK" & wait`,
	"the command ends": `setsid sh -c "$WORK" & while ! grep -q a $JOURNAL; do sleep 0.02; done`,
}

// stray returns the arguments of a run whose command leaves the word a in the journal, again and again, from a process that
// is not in the command's group.
func stray(t *testing.T, how, path string, j journal) []string {
	t.Helper()
	if program := strings.Fields(strays[how])[0]; program == "script" {
		if _, err := exec.LookPath(program); err != nil {
			testserver.Missing(t, err)
		}
	}
	return []string{"run", "--timeout", "10s", "--grace", "500ms", path, "--", "bash", "-c",
		"export JOURNAL=" + string(j) + " WORK='" + j.loop("a") + "' </dev/null >/dev/null; " + strays[how]}
}

// Descendants that have left the command's group end before the lock is free, like those in the group: at the command's end
// and when turnstile is killed.
func TestRunDescendants(t *testing.T) {
	t.Parallel()
	for how := range strays {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(how+"/"+sig.String(), func(t *testing.T) {
				t.Parallel()
				path, j := testserver.Path(t), newJournal(t)
				p := start(t, server(t), stray(t, how, path, j)...)
				j.await(t, "a")
				rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 0.5")
				_ = p.cmd.Process.Signal(sig) // if it has not ended yet
				rival.wait(t, 0)
				wantLast(t, j, "B", "a")
			})
		}
	}
}

// The signals that end a command end one that is stopped, too.
func TestRunStoppedCommandEnds(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		file := filepath.Join(t.TempDir(), "pid")
		p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", "echo $$ > "+file+"; kill -STOP $$; exec sleep 1000")
		pid := pidOf(t, file)
		zktest.Eventually(t, patience, "a command that is stopped", func() bool { return stateOf(pid) == "T" })
		p.signal(t, sig)
		p.wait(t, 128+int(sig))
	}
}

// They end with the lease, too, if turnstile is stopped.
func TestRunDescendantsStopped(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	p := start(t, server(t), stray(t, "daemon", path, j)...)
	j.await(t, "a")
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
	p.signal(t, syscall.SIGSTOP)
	rival.wait(t, 0)
	wantLast(t, j, "B", "a")
	p.signal(t, syscall.SIGCONT)
	p.wait(t, codeLost)
}

// A shell that becomes turnstile leaves it its children. They go on if the guard is killed.
func TestRunGuardKilledSparesOthers(t *testing.T) {
	t.Parallel()
	path, j, file := testserver.Path(t), newJournal(t), filepath.Join(t.TempDir(), "pid")
	script := "sleep 1000 >/dev/null 2>&1 & echo $! > " + file + "; exec " + os.Args[0] + " run " + path + " -- sh -c \"" + j.loop("A") + "\""
	p := startCommand(t, server(t), exec.Command("sh", "-c", script))
	j.await(t, "A")
	other := pidOf(t, file)
	defer func() { _ = syscall.Kill(other, syscall.SIGKILL) }()
	if err := syscall.Kill(p.awaitChild(t, guardName), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.wait(t, codeFailed)
	if gone(other) {
		t.Error("a process that has nothing to do with the command was killed")
	}
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

// A process whose main thread has ended looks like a zombie, and works on. It is ended like any other.
func TestRunMainThreadEnded(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	p := start(t, server(t), "run", path, "--", "sh", "-c",
		threadEnv+"="+string(j)+" setsid "+os.Args[0]+" & while ! grep -qs a "+string(j)+"; do sleep 0.02; done; exit 7")
	j.await(t, "a")
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 0.5")
	p.wait(t, 7)
	rival.wait(t, 0)
	wantLast(t, j, "B", "a")
}
