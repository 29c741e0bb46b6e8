package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
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
	return lookAround()
}

// lookAround returns why /proc does not show the descendants of this process. In a PID namespace without a /proc of its own,
// the numbers there are those of another namespace, in which they stand for other processes.
func lookAround() error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	if p, ok := parseStat(stat); !ok || p.pid != os.Getpid() {
		return errors.New("/proc is that of another PID namespace")
	}
	return nil
}

// dieWithParent has the kernel send a signal to a new process when the thread that has started it ends.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// process is a descendant.
type process struct {
	pid, parent    int
	group, session int
	name           string
	dead           bool // and nobody has waited for it
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.name) }

// descendants returns all descendants of this process that are not dead, without some and what is below these.
func descendants(without map[int]bool) []process {
	below := make(map[int][]process)
	for _, p := range processes() {
		below[p.parent] = append(below[p.parent], p)
	}
	var found []process
	for next := []int{os.Getpid()}; len(next) > 0; {
		children := below[next[0]]
		delete(below, next[0])
		next = next[1:]
		for _, p := range children {
			if without[p.pid] {
				continue
			}
			next = append(next, p.pid)
			if !p.dead {
				found = append(found, p)
			}
		}
	}
	return found
}

// processes returns all processes. It looks into no more directories than it has to: there can be many, and little time.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []process
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if p, ok := parseStat(stat); ok && err == nil {
			all = append(all, p)
		}
	}
	return all
}

// orphaned reports whether this process's group is orphaned, as POSIX calls it: no process of it has a parent in another
// group of the same session. So there is no shell that could continue the group if it was stopped.
func orphaned() bool {
	if lookAround() != nil {
		return false
	}
	known := make(map[int]process)
	for _, p := range processes() {
		known[p.pid] = p
	}
	self := known[os.Getpid()]
	for _, p := range known {
		parent, ok := known[p.parent]
		if ok && p.group == self.group && parent.group != self.group && parent.session == self.session {
			return false
		}
	}
	return true
}

// parseStat reads a line of /proc/PID/stat.
func parseStat(stat []byte) (p process, ok bool) {
	// The name may contain anything. It ends at the last parenthesis. State, parent, group and session follow.
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if from < 0 || to < from {
		return p, false
	}
	fields := bytes.Fields(stat[to+1:])
	if len(fields) < 4 {
		return p, false
	}
	var errs [4]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(stat[:from])))
	p.parent, errs[1] = strconv.Atoi(string(fields[1]))
	p.group, errs[2] = strconv.Atoi(string(fields[2]))
	p.session, errs[3] = strconv.Atoi(string(fields[3]))
	p.name = string(stat[from+1 : to])
	// A process whose main thread has ended is a zombie here, and can work on in other threads.
	p.dead = bytes.ContainsAny(fields[0], "ZXx") && !hasThreads(fields)
	return p, errs == [4]error{}
}

// threadsField is the place of the number of threads in a line of /proc/PID/stat, behind the name.
const threadsField = 17

func hasThreads(fields [][]byte) bool {
	if len(fields) <= threadsField {
		return false
	}
	n, err := strconv.Atoi(string(fields[threadsField]))
	return err == nil && n > 1
}
