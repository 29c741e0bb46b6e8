//go:build linux || darwin || freebsd

package supervise

import (
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stops is what turnstile knows of a command that a signal has stopped.
type stops struct {
	paused syscall.Signal // has stopped the command; 0: it is not stopped
	warned bool           // of that
	// suspend is when turnstile was told to stop, and 0 once it has: by clock. It stops after its command.
	suspend time.Duration
	forced  bool // the command did not stop for SIGTSTP, and got SIGSTOP
}

// take passes a signal on.
func (r *runner) take(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if r.group == 0 && slices.Contains(early, sig) {
		r.early = sig // in case the guard does not start the command
	}
	switch {
	case r.group == 0 && !r.asked:
	case sig == unix.SIGTSTP && orphaned():
		// The kernel spares processes that no shell could continue.
	case sig == unix.SIGTSTP:
		r.suspend, r.forced = clock(), false
		r.tell(true, sig)
	case slices.Contains(early, sig):
		// A command usually ends at these. One that is stopped gets them when it goes on, so SIGCONT follows, as with the
		// kill of a shell.
		r.tell(r.ended, sig, unix.SIGCONT)
	case sig == unix.SIGCONT:
		r.suspend = 0
		r.tell(true, sig)
	default:
		r.tell(r.ended, sig)
	}
}

// tell has the guard send signals to the command's group, or to all descendants.
func (r *runner) tell(all bool, signals ...syscall.Signal) {
	r.guard.tell(order{Signals: signals, All: all})
}

// stopped takes note of a signal that has stopped the command.
func (r *runner) stopped(by syscall.Signal) {
	r.paused, r.warned = by, false
	if r.suspend != 0 {
		r.stop()
	}
}

// stop stops turnstile after its command. SIGCONT is passed on to the command, so both go on together. Meanwhile nobody
// keeps the lock, and the guard ends the command when the lease does.
func (r *runner) stop() {
	r.suspend, r.warned = 0, true
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
}

// obeyTime is how long a command may take to stop at SIGTSTP.
const obeyTime = time.Second

// settle looks after a command that is stopped, or should be.
//
// A command in the background that reads from the terminal is stopped. If turnstile is in the
// foreground, the terminal is given to the command. A command in the foreground is stopped by
// Ctrl-Z. It would keep the lock without working for it, and the shell would not come back, because
// turnstile has to go on for the lock's sake. So the command goes on as well.
//
// Any other command that is stopped stays so, with a warning, until somebody continues or ends it, or its terminal is
// closed.
func (r *runner) settle() {
	if r.suspend != 0 {
		r.insist()
		return
	}
	reads := r.paused == unix.SIGTTIN || r.paused == unix.SIGTTOU
	switch {
	case r.paused == 0:
		return
	case reads && r.tty.mine():
		r.tty.give(r.group)
		r.tell(false, unix.SIGCONT)
	case r.paused != unix.SIGSTOP && r.tty.serves(r.group):
		r.Log.Warn("the command holds a lock and cannot be suspended: it goes on")
		r.tell(false, unix.SIGCONT)
	case r.tty.closed():
		r.Log.Warn("the command was stopped, and its terminal is closed: ending it")
		r.tell(true, unix.SIGHUP, unix.SIGCONT)
	case !r.warned:
		r.warned = true
		r.Log.Warn("a signal has stopped the command, and it still holds the lock: SIGCONT continues it, and SIGTERM ends it",
			"signal", unix.SignalName(r.paused))
		return
	default:
		return
	}
	r.paused = 0
}

// insist stops a command that was told to stop and has not, and then turnstile.
func (r *runner) insist() {
	switch late := clock() - r.suspend; {
	case r.paused != 0 || r.ended || late > 2*obeyTime:
		r.stop()
	case late > obeyTime && !r.forced:
		r.forced = true
		r.tell(true, unix.SIGSTOP)
	}
}
