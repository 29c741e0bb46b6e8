//go:build linux || darwin || freebsd

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// process is a turnstile in a process of its own.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *buffer
	ended          chan struct{} // closed when the process has ended
}

// longTimeout is the session timeout where a test does not choose one: no lock is lost on a machine that
// is busy for seconds.
const longTimeout = "TURNSTILE_TIMEOUT=40s"

// start starts turnstile, connected to a server. It is killed when the test ends.
func start(t *testing.T, server string, args ...string) *process {
	t.Helper()
	return startCommand(t, server, exec.Command(os.Args[0], args...))
}

// begin starts turnstile with an input.
func (w *world) begin(t *testing.T, in string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stdin = strings.NewReader(in)
	return startCommand(t, w.addr, cmd)
}

// hold starts a run that holds a lock until it is ended.
func hold(t *testing.T, flags ...string) *process {
	t.Helper()
	return holdAt(t, server(t), flags...)
}

func holdAt(t *testing.T, addr string, flags ...string) *process {
	t.Helper()
	j := newJournal(t)
	p := start(t, addr, append(append([]string{"run"}, flags...), "--", "sh", "-c", j.once("A")+"; exec sleep 1000")...)
	j.await(t, "A")
	return p
}

// startCommand is start with a command that runs turnstile.
func startCommand(t *testing.T, server string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, stdout: new(buffer), stderr: new(buffer), ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	}
	cmd.WaitDelay = testserver.Patience // for the rest of the output
	p.cmd.Env = append(os.Environ(), programEnv+"=1", "TURNSTILE_ZK="+server, longTimeout)
	if p.cmd.SysProcAttr == nil { // no process has the terminal of the tests
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	expect.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("turnstile %s: %v\nstdout: %s\nstderr: %s", strings.Join(p.cmd.Args[1:], " "), p.cmd.ProcessState, p.stdout, p.stderr)
		}
	})
	return p
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%v: %v", sig, err)
	}
}

// wait waits for the end of the process, and checks its exit status.
func (p *process) wait(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%v does not end; stderr: %s", p.cmd.Args[1:], p.stderr)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%v: %v, want exit status %d; stderr: %s", p.cmd.Args[1:], p.cmd.ProcessState, code, p.stderr)
	}
}

const guardName = "turnstile-guard"

// awaitChild waits for a child whose command line begins with a name, and returns its process id.
func (p *process) awaitChild(t *testing.T, name string) (pid int) {
	t.Helper()
	zktest.Eventually(t, patience, "a child "+name, func() bool {
		out, _ := exec.Command("pgrep", "-P", strconv.Itoa(p.cmd.Process.Pid), "-f", "^"+regexp.QuoteMeta(name)).Output()
		pid, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		return pid != 0
	})
	return pid
}

// contender is how others name the process.
func (p *process) contender(t *testing.T) string {
	t.Helper()
	host, err := os.Hostname()
	expect.NoError(t, err)
	return fmt.Sprintf("%s/%d", host, p.cmd.Process.Pid)
}

// prints waits for texts in the output.
func (p *process) prints(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		zktest.Eventually(t, patience, "in the output: "+text, func() bool {
			return strings.Contains(p.stdout.String()+p.stderr.String(), text)
		})
	}
}

// patience is for all that has to happen in the end. It covers session timeouts.
const patience = 2 * testserver.Patience

// journal is a file that commands add lines to.
type journal string

func newJournal(t *testing.T) journal { return journal(filepath.Join(t.TempDir(), "journal")) }

func (j journal) lines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(string(j))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// await waits for a line.
func (j journal) await(t *testing.T, line string) {
	t.Helper()
	zktest.Eventually(t, patience, fmt.Sprintf("%q in the journal", line), func() bool { return j.last(t, line) >= 0 })
}

// last returns the index of the last line that is word, or -1.
func (j journal) last(t *testing.T, word string) int {
	t.Helper()
	lines := j.lines(t)
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == word {
			return i
		}
	}
	return -1
}

// forever is a shell command that adds a word to the journal again and again. A process that it
// starts in the background does so too, with the word in lower case. Neither ends at SIGTERM.
func (j journal) forever(word string) string {
	return "trap '' TERM; (" + j.loop(strings.ToLower(word)) + ") & " + j.loop(word)
}

// loop is a shell command that adds a word to the journal again and again.
func (j journal) loop(word string) string {
	return "while :; do echo " + word + " >> " + string(j) + "; sleep 0.02; done"
}

// once is a shell command that adds a word to the journal.
func (j journal) once(word string) string { return "echo " + word + " >> " + string(j) }

// pidOf waits for a number in a file that a command writes.
func pidOf(t *testing.T, file string) int {
	t.Helper()
	var pid int
	zktest.Eventually(t, patience, "a process id in "+file, func() bool {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	return pid
}

// stateOf returns the state of a process as /proc shows it, such as T of one that is stopped.
func stateOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}
