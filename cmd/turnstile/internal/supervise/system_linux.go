package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// clockID goes on while the machine is suspended.
const clockID = unix.CLOCK_BOOTTIME

// adopts says that a process can become the parent of descendants whose own parent has ended.
const adopts = true

// Adopt makes this process the parent of all descendants whose own parent has ended. In a PID namespace without a /proc of
// its own, the numbers there are those of another namespace, in which they stand for other processes.
func Adopt() error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return fmt.Errorf("run needs /proc: %w", err)
	}
	if p, ok := parseStat(stat); !ok || p.pid != os.Getpid() {
		return errors.New("run needs a /proc of its own PID namespace")
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// dieWithParent has the kernel send a signal to a new process when the thread that has started it ends.
func dieWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// rename gives this process a name in ps and top, which would show the name of the link that was executed.
func rename(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// self is the path of this program, even if its file was replaced meanwhile.
func self() (string, error) { return "/proc/self/exe", nil }

// process is a descendant.
type process struct {
	pid, parent, group int
	name               string
	dead               bool // and nobody has waited for it
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.name) }

// descendants returns all descendants of this process that are not dead. It looks into no more directories than it has to:
// there can be many, and little time.
func descendants() (found []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	below := make(map[int][]process)
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + name + "/stat")
		if p, ok := parseStat(stat); ok {
			below[p.parent] = append(below[p.parent], p)
		}
	}
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, p := range below[next[0]] {
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
	// The name may contain anything. It ends at the last parenthesis. State, parent and group follow, and later the
	// number of threads.
	const threads = 17
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[to+1:]))
	if from < 0 || len(fields) <= threads {
		return p, false
	}
	p.pid, _ = strconv.Atoi(strings.TrimSpace(string(stat[:from])))
	p.parent, _ = strconv.Atoi(fields[1])
	p.group, _ = strconv.Atoi(fields[2])
	p.name = string(stat[from+1 : to])
	// A process whose main thread has ended is a zombie here, and can work on in other threads.
	p.dead = strings.Contains("ZXx", fields[0]) && fields[threads] <= "1"
	return p, true
}

// ignoredByParent returns the mask of the signals that the parent of this process ignores, if the parent is a shell ("trap
// ” TERM") or turnstile. They have their children ignore these too. The Go runtime respects that for HUP and INT only, and
// for the others it cannot be found out afterwards. Other callers can ignore a signal and not have their children do so.
func ignoredByParent() (mask uint64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", os.Getppid()))
	if err != nil {
		return 0
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	shell := slices.Contains([]string{"sh", "bash", "dash", "ash", "busybox", "ksh", "mksh", "zsh"}, fields["Name"])
	if shell || IsHelper() {
		mask, _ = strconv.ParseUint(fields["SigIgn"], 16, 64)
	}
	return mask
}
