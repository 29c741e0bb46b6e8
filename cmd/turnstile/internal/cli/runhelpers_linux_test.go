package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// child is a child of a process, as /proc shows it.
type child struct {
	pid   int
	name  string // argument 0; empty if the child is dead
	state string
}

func childrenOf(pid int) []child {
	var all []child
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] != strconv.Itoa(pid) {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
		name, _, _ := strings.Cut(string(line), "\x00")
		all = append(all, child{id, name, fields[0]})
	}
	return all
}

// awaitChild waits for a child with a name, other than some process, and returns its process id.
func (p *process) awaitChild(t *testing.T, name string, other int) int {
	t.Helper()
	var pid int
	zktest.Eventually(t, patience, "a child "+name, func() bool {
		for _, c := range childrenOf(p.cmd.Process.Pid) {
			if c.name == name && c.pid != other {
				pid = c.pid
			}
		}
		return pid != 0
	})
	return pid
}

const guardName = "turnstile-guard"

// However early turnstile is stopped, its command does not work beside the next holder: not when turnstile is
// stopped as the command begins, and not when it goes on after the lease.
func TestRunStoppedAtStart(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), shortLease(path, "kill -STOP $PPID; "+j.forever("A"))...)
	j.await(t, "A")
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
	rival.wait(t, 0)
	wantLast(t, j, "B", "A")
	holder.signal(t, syscall.SIGCONT)
	holder.wait(t, codeLost)
	wantLast(t, j, "B", "A")
}

// If turnstile is stopped between the start of the guard and that of the command, and goes on after
// the lease, the command does not start.
func TestRunStoppedBeforeStart(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), shortLease(path, j.forever("A"))...)
	zktest.Eventually(t, patience, "a guard", func() bool {
		return len(childrenOf(holder.cmd.Process.Pid)) > 0
	})
	holder.signal(t, syscall.SIGSTOP)
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 2")
	j.await(t, "B")
	holder.signal(t, syscall.SIGCONT)
	rival.wait(t, 0)
	holder.wait(t, codeLost)
	for _, line := range j.lines(t)[j.last(t, "B"):] {
		if line != "B" {
			t.Fatalf("the command has worked beside the next holder: %q", j.lines(t))
		}
	}
}

// A guard that is killed is replaced. The new one ends the command if turnstile is stopped.
func TestRunGuardKilled(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), shortLease(path, j.forever("A"))...)
	j.await(t, "a")
	guard := holder.awaitChild(t, guardName, 0)
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	holder.awaitChild(t, guardName, guard)
	zktest.Eventually(t, patience, "a warning", func() bool {
		return strings.Contains(holder.stderr.String(), "another one")
	})
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
	holder.signal(t, syscall.SIGSTOP)
	rival.wait(t, 0)
	wantLast(t, j, "B", "A", "a")
}

// The same if turnstile is killed: no child of the command lives on.
func TestRunGuardKilledThenKilled(t *testing.T) {
	t.Parallel()
	script, pids := withPids(t)
	holder := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", script)
	all := pids()
	guard := holder.awaitChild(t, guardName, 0)
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, patience, "a warning", func() bool {
		return strings.Contains(holder.stderr.String(), "another one")
	})
	holder.signal(t, syscall.SIGKILL)
	waitGone(t, all)
}

// If guards cannot live, the command is ended rather than left without one.
func TestRunGuardsKilled(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), "run", "--grace", "2s", path, "--", "sh", "-c", j.forever("A"))
	j.await(t, "a")
	zktest.Eventually(t, patience, "the end of turnstile", func() bool {
		for _, c := range childrenOf(holder.cmd.Process.Pid) {
			if c.name == guardName {
				_ = syscall.Kill(c.pid, syscall.SIGKILL)
			}
		}
		return strings.Contains(holder.stderr.String(), "no guard")
	})
	holder.wait(t, codeFailed)
}

// The kernel kills the command when turnstile dies, even if the guard can do nothing.
func TestRunKilledWithoutGuard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	holder := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", "echo $$ > "+file+"; exec sleep 1000")
	pid := pidOf(t, file)
	guard := holder.awaitChild(t, guardName, 0)
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(guard, syscall.SIGCONT) }()
	holder.signal(t, syscall.SIGKILL)
	waitGone(t, []int{pid})
}
