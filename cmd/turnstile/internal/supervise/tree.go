//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a command and its descendants, as the process sees them that has started the command, or has inherited it. The
// process must have no children but these, and others that are known.
type tree struct {
	id     int  // of the command; 0: it was not started
	shared bool // the command is in turnstile's process group, and otherwise it leads one of its own
	ended  bool // the command has ended
	status syscall.WaitStatus

	others    map[int]bool // children that have nothing to do with the command
	blind     bool         // /proc does not show the descendants
	childless bool         // at the last reap, the process had no child
	vain      int          // how often in succession kill has found nobody
}

// reap takes the statuses of all children that have ended.
func (t *tree) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid <= 0:
			t.childless = errors.Is(err, unix.ECHILD)
			return
		case pid == t.id && !t.ended:
			t.ended, t.status = true, status
		}
	}
}

// gone reports whether, at the last reap, neither the command nor any descendant was left. On Linux all descendants are
// below a child of the process. Elsewhere only those in the command's group count.
func (t *tree) gone() bool {
	if !t.childless && (len(t.others) == 0 || len(t.descendants()) > 0) {
		return false
	}
	return adopts || t.shared || t.id == 0 || errors.Is(unix.Kill(-t.id, 0), unix.ESRCH)
}

// signal sends a signal to the command's group, and with all also to the descendants that have left it. It reports whether
// any process got it, and returns those that it may not send the signal to.
func (t *tree) signal(sig syscall.Signal, all bool) (sent bool, stuck []string) {
	send := func(pid int, name string) bool {
		switch err := unix.Kill(pid, sig); {
		case err == nil:
			sent = true
			return true
		case errors.Is(err, unix.EPERM):
			stuck = append(stuck, name)
		}
		return false
	}
	group, reached := t.id, false
	switch {
	// The kernel does not give the number of a group away that has a member, but it does so with that of a process.
	case t.id == 0, t.ended && (t.shared || adopts && !t.blind):
	case t.shared:
		group, _ = unix.Getpgid(t.id)
		send(t.id, "the command")
	default:
		reached = send(-t.id, "the group of the command")
	}
	for _, d := range t.descendants() {
		member := d.group == group && !t.ended
		switch {
		case d.pid == t.id, member && reached && sig != unix.SIGKILL: // it has got the signal
		case all || t.ended || member:
			send(d.pid, d.String())
		}
	}
	return sent, stuck
}

// descendants returns those that /proc shows.
func (t *tree) descendants() []process {
	if t.blind {
		return nil
	}
	return descendants(t.others)
}

// mostVain is how often kill tries to find processes. They can be hidden, and one that ends is not found any more.
const mostVain = 100

// kill kills the command's group and all descendants. New processes are found the next time. It returns those that it may
// not kill or cannot find, if there are no others.
func (t *tree) kill() (stuck []string) {
	sent, stuck := t.signal(unix.SIGKILL, true)
	if sent {
		t.vain = 0
		return nil
	}
	if t.vain++; len(stuck) == 0 && t.vain > mostVain {
		return []string{"processes that /proc does not show"}
	}
	return stuck
}
