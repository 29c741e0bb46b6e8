//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a command and its descendants, as the process sees them that has started the command, or has inherited it. The
// process must have no other children.
type tree struct {
	id     int  // of the command; 0: it was not started
	shared bool // the command is in turnstile's process group, and otherwise it leads one of its own
	ended  bool // the command has ended
	status syscall.WaitStatus

	childless bool // at the last reap, the process had no child
	kills     int
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
	return t.childless && (adopts || t.shared || t.id == 0 || errors.Is(unix.Kill(-t.id, 0), unix.ESRCH))
}

// signal sends a signal to the command's group, and with all, or when the command has ended, also to the descendants that have
// left it.
func (t *tree) signal(sig syscall.Signal, all bool) {
	group, reached := t.id, false
	switch {
	// The kernel does not give the number of a group away that has a member, but it does so with that of a process.
	case t.id == 0, t.ended && (t.shared || adopts):
	case t.shared:
		group, _ = unix.Getpgid(t.id)
		_ = unix.Kill(t.id, sig)
	default:
		reached = unix.Kill(-t.id, sig) == nil
	}
	for _, d := range descendants() {
		member := d.group == group && !t.ended
		switch {
		case d.pid == t.id && !t.ended, member && reached && sig != unix.SIGKILL: // it has got the signal
		case all || t.ended || member:
			_ = unix.Kill(d.pid, sig)
		}
	}
}

// mostKills is how often kill tries: for ten seconds. A process can be hidden, belong to another user, or hang in the kernel.
const mostKills = 1000

// kill kills the command's group and all descendants. New processes are found the next time. After many times it returns those
// that are left.
func (t *tree) kill() (stuck []string) {
	t.signal(unix.SIGKILL, true)
	if t.kills++; t.kills < mostKills {
		return nil
	}
	if stuck = leftovers(); stuck == nil {
		stuck = []string{"processes that /proc does not show"}
	}
	return stuck
}

// leftovers names all descendants.
func leftovers() (names []string) {
	for _, d := range descendants() {
		names = append(names, d.String())
	}
	return names
}
