package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopts says that a process can become the parent of descendants whose own parent has ended.
const adopts = true

// adopt makes this process the parent of all descendants whose own parent has ended.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", err)
	}
	if _, err := os.ReadFile("/proc/self/stat"); err != nil {
		return err
	}
	return nil
}

// dieWithParent has the kernel send a signal to a new process when the thread that has started it ends.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// process is a descendant.
type process struct {
	pid, parent, group int
	name               string
	dead               bool // and nobody has waited for it
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.name) }

// descendants returns all descendants of this process that are not dead.
func descendants() []process {
	below := make(map[int][]process)
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if p, ok := parseStat(stat); ok && err == nil {
			below[p.parent] = append(below[p.parent], p)
		}
	}
	var found []process
	for next := []int{os.Getpid()}; len(next) > 0; {
		children := below[next[0]]
		delete(below, next[0])
		next = next[1:]
		for _, p := range children {
			next = append(next, p.pid)
			if !p.dead {
				found = append(found, p)
			}
		}
	}
	return found
}

// parseStat reads a line of /proc/PID/stat.
func parseStat(stat []byte) (p process, ok bool) {
	// The name may contain anything. It ends at the last parenthesis. State, parent and group follow.
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if from < 0 || to < from {
		return p, false
	}
	fields := bytes.Fields(stat[to+1:])
	if len(fields) < 3 {
		return p, false
	}
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(stat[:from])))
	p.parent, errs[1] = strconv.Atoi(string(fields[1]))
	p.group, errs[2] = strconv.Atoi(string(fields[2]))
	p.name = string(stat[from+1 : to])
	p.dead = bytes.ContainsAny(fields[0], "ZXx")
	return p, errs == [3]error{}
}
