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

// awaitChild waits for a child with a name, and returns its process id.
func (p *process) awaitChild(t *testing.T, name string) int {
	t.Helper()
	var pid int
	zktest.Eventually(t, patience, "a child "+name, func() bool {
		for _, c := range childrenOf(p.cmd.Process.Pid) {
			if c.name == name {
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
	holder := start(t, server(t), shortLease(path, "kill -STOP $(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status); "+j.forever("A"))...)
	j.await(t, "A")
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
	rival.wait(t, 0)
	wantLast(t, j, "B", "A")
	holder.signal(t, syscall.SIGCONT)
	holder.wait(t, codeLost)
	wantLast(t, j, "B", "A")
}

// If turnstile is stopped between the grant of the lock and the start of the command, and goes on after
// the lease, the command does not start beside the next holder. It may start after that: turnstile may not have noticed yet
// that it had the lock.
func TestRunStoppedBeforeStart(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), shortLease(path, j.forever("A"))...)
	testserver.WaitChildren(t, path, 1)
	holder.signal(t, syscall.SIGSTOP)
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 2; "+j.once("C"))
	j.await(t, "B")
	holder.signal(t, syscall.SIGCONT)
	rival.wait(t, 0)
	lines := j.lines(t)
	for _, line := range lines[j.last(t, "B"):j.last(t, "C")] {
		if line != "B" {
			t.Fatalf("the command has worked beside the next holder: %q", lines)
		}
	}
}

// If the guard is killed, the command and all of its descendants are dead before the lock is free.
func TestRunGuardKilled(t *testing.T) {
	t.Parallel()
	path, j := testserver.Path(t), newJournal(t)
	holder := start(t, server(t), "run", path, "--", "sh", "-c", "setsid sh -c \""+j.loop("far")+"\" & "+j.forever("A"))
	for _, word := range []string{"A", "a", "far"} {
		j.await(t, word)
	}
	rival := start(t, server(t), "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
	testserver.WaitChildren(t, path, 2)
	if err := syscall.Kill(holder.awaitChild(t, guardName), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	holder.wait(t, codeFailed)
	rival.wait(t, 0)
	wantLast(t, j, "B", "A", "a", "far")
	if !strings.Contains(holder.stderr.String(), "guard was killed") {
		t.Errorf("stderr %q does not contain the reason", holder.stderr)
	}
}

// A guard that is stopped goes on when turnstile dies.
func TestRunKilledStoppedGuard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	holder := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", "echo $$ > "+file+"; exec sleep 1000")
	pid := pidOf(t, file)
	guard := holder.awaitChild(t, guardName)
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	holder.signal(t, syscall.SIGKILL)
	waitGone(t, []int{pid})
}
