package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the command when turnstile is dead. The kernel does that for the
// command alone, and not if the command runs with other rights (sudo). The guard kills the whole
// group.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// dieWithStarter does the same for the thread of a starter that becomes the command.
func dieWithStarter() { _ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) }

// adopt makes turnstile the parent of processes whose own parent has ended, so that it can reap
// them. In a container there may be nobody else who does, and a group of dead processes
// would look like one that still runs.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reap removes dead processes of a group that turnstile has adopted. The group's command must have
// been waited for.
func reap(group int) {
	for {
		pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}

// reapOrphans removes all dead children of turnstile other than those that package os/exec waits for. It must
// not be called in a process with other children than these.
func reapOrphans(others ...int) {
	for {
		var info unix.Siginfo
		if unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) != nil {
			return
		}
		pid := childOf(&info)
		if pid == 0 {
			return
		}
		for _, other := range others {
			if pid == other {
				return // its Wait is about to return, and then Run calls reapOrphans again
			}
		}
		if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got != pid || err != nil {
			return
		}
	}
}

// childOf returns the process id in what waitid has written, or 0 if there was no child. Package unix
// does not name the field. It follows three numbers, aligned like a pointer.
func childOf(info *unix.Siginfo) int {
	const align = unsafe.Sizeof(uintptr(0))
	const offset = (3*4 + align - 1) / align * align
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset)))
}

// alive reports whether any process of the group is not dead. A dead process whose parent does not
// wait for it stays in its group. The group must have got SIGKILL, so that it has no new processes.
func (g *group) alive() bool {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return true // nobody knows
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err == nil && inGroup(stat, g.id) {
			return true
		}
	}
	return false
}

// inGroup reports whether a line of /proc/PID/stat is that of a process in a group that is not dead.
func inGroup(stat []byte, group int) bool {
	// The name before the last parenthesis may contain anything. State, parent and group follow.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
		return false
	}
	state := string(fields[0])
	return state != "Z" && state != "X" && state != "x"
}

// stopped reports whether the command has been stopped since the last call.
func (g *group) stopped() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, g.id, &info, unix.WSTOPPED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}
