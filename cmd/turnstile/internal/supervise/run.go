//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Supported returns nil: Run is supported on this system.
func Supported() error { return nil }

// Run runs a command while a lock is held. The guard must be new. Run returns when neither the command nor any descendant
// runs any more. If the lock is lost, or about to be, it ends them: see [Limits]. Processes that the command leaves are
// ended too, before Run returns, unless [Options] say to wait for them. The process must have no other children than the
// guard and those that it had when the guard was started.
//
// Signals that turnstile gets meanwhile go to the command's process group. If turnstile dies or is stopped, the guard
// ends the command. If signals has caught one already, Run does not start the command, and the status tells of
// the signal.
//
// The error matches [ErrStart] if the command could not be started. The lock stays the caller's in
// any case.
func Run(guard *Guard, c Command, lock Lock, signals *Signals, o Options) (Result, error) {
	catch(signals.c, later...)
	if sig, ok := signals.pending(); ok {
		return Result{Status: 128 + int(sig)}, nil
	}
	r := &runner{Options: o, lock: lock, guard: guard, tty: openTerminal(), signals: signals.c, reports: guard.reports}
	if r.tty.file != nil {
		// The command can have the terminal, and a warning must not stop turnstile then (stty tostop). The guard runs already,
		// so the command does not inherit this.
		signal.Ignore(unix.SIGTTOU)
	}
	if err := adopt(); err != nil {
		r.Log.Warn("processes that leave the command's process group are not found, and can outlive the lock", "err", err)
	}
	r.command = start{
		Path: []byte(c.Path), Args: bytesOf(c.Args), Env: bytesOf(c.Env),
		Foreground: r.tty.serves(r.tty.own) && isTerminal(guard.streams[0]) && isTerminal(guard.streams[1]),
	}
	r.loop()
	return r.result()
}

// result tells how the command has ended.
func (r *runner) result() (Result, error) {
	status := 128 + int(r.early)
	if r.ended {
		status = r.status.ExitStatus()
		if r.status.Signaled() {
			status = 128 + int(r.status.Signal())
		}
	}
	given := r.group != 0 && r.tty.serves(r.group)
	r.tty.takeBack(given, r.status.Signaled())
	switch {
	case r.failed != 0:
		return Result{}, fmt.Errorf("%w: %w", ErrStart, &os.PathError{Op: "exec", Path: string(r.command.Path), Err: r.failed})
	case r.unguarded:
		return Result{}, ErrUnguarded
	}
	return Result{
		Status: status, Started: r.group != 0, Lost: r.cause,
		Interrupted: given && r.ended && r.status.Signal() == unix.SIGINT,
	}, nil
}

// runner is one call of Run.
type runner struct {
	Options
	command start
	lock    Lock
	guard   *Guard
	tty     *terminal
	signals <-chan os.Signal
	reports <-chan report // nil: the guard has ended

	asked  bool           // the guard was told to start the command, and has not answered
	early  syscall.Signal // came before the command was started
	group  int            // of the command; 0: it was not started
	failed syscall.Errno  // the error of the start

	ended     bool // the command has ended
	status    syscall.WaitStatus
	left      []string // what it has left
	gone      bool     // that has ended too
	unguarded bool     // the guard has ended

	paused  syscall.Signal // has stopped the command; 0: it is not stopped
	warned  bool           // of that
	suspend time.Duration  // when turnstile was told to stop, by clock, and 0 once it has: it stops after its command
	forced  bool           // the command did not stop for SIGTSTP, and got SIGSTOP

	give   bool          // somebody has asked for the lock, and the command has to end
	told   time.Duration // when the command got SIGTERM
	killed bool
	cause  error // of the loss
}

// loop returns when neither the command nor a descendant runs any more.
func (r *runner) loop() {
	lost := r.lock.Done()
	for {
		action, wait := r.step()
		if action == finish {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case s := <-r.signals:
			if sig, ok := s.(syscall.Signal); ok {
				r.pass(sig)
			}
		case <-lost:
			lost = nil
		case <-r.lock.Changed():
		case report, ok := <-r.reports:
			if ok {
				r.hear(report)
			} else {
				r.lonely()
			}
		case <-r.askedNow():
			r.Asked = nil // it is closed
			if r.AskedSignal == 0 {
				r.give = true
				break
			}
			r.Log.Warn("somebody asks for the lock: telling the command", "signal", unix.SignalName(r.AskedSignal))
			r.pass(r.AskedSignal)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// askedNow returns Options.Asked. A signal that only the command knows the meaning of has to wait for the command.
func (r *runner) askedNow() <-chan struct{} {
	if r.group == 0 && r.AskedSignal != 0 && !slices.Contains(early, r.AskedSignal) {
		return nil
	}
	return r.Asked
}

// step looks at the lock and the command, and acts. It depends on nothing that was seen before turnstile
// was stopped, if it was.
func (r *runner) step() (action, time.Duration) {
	v := view{now: clock(), told: r.told, running: !r.ended, group: !r.gone, wait: r.WaitDescendants, give: r.give}
	left, timeout := r.lock.Remaining()
	err := r.lock.Err()
	switch {
	case err == nil:
		v.remaining = left
	case r.lock.Deleted():
		v.fate = deleted
	default:
		v.fate = expired
	}
	before := r.Limits
	r.Limits = before.at(timeout)
	if before.given != 0 && r.Limits.grace != before.grace {
		r.Log.Warn("the servers have changed the session timeout, and the grace period had to follow",
			"timeout", timeout, "grace", r.Limits.grace)
	}
	r.note(v, err)
	action, wait := r.Limits.decide(v)
	if r.group == 0 && !r.asked && (action != watch || r.told != 0 || r.early != 0 || r.failed != 0 || r.unguarded) {
		return finish, 0 // there is nothing to end
	}
	switch action {
	case finish:
		return finish, 0
	case terminate:
		r.told, v.told = v.now, v.now
		r.tell(true, unix.SIGTERM, unix.SIGCONT) // a process that is stopped gets SIGTERM when it goes on
		r.explain(v)
	case kill:
		if !r.killed && r.group != 0 {
			r.Log.Warn("killing the command's processes")
		}
		if !r.killed {
			r.killed = true
			r.guard.tell(order{Kill: true})
		}
	}
	o := order{Until: r.Limits.guardUntil(v)}
	if action == watch && r.group == 0 && !r.asked {
		// If the guard is slow, and less than the grace period remains by then, it says that it is late.
		r.asked = true
		command := r.command
		command.Deadline = v.now + v.remaining - r.Limits.grace
		o.Start = &command
	}
	r.guard.tell(o)
	if r.settle() {
		wait = min(wait, r.Limits.poll())
	}
	return action, wait
}

// note keeps the cause of a loss. If the lock is lost when the end of the command is noticed, nobody
// knows which was first.
func (r *runner) note(v view, err error) {
	switch {
	case r.cause != nil:
	case err != nil:
		r.cause = err
	case v.remaining <= r.Limits.grace && (v.group || r.status.Signal() == unix.SIGKILL):
		r.cause = errEnding // SIGKILL can have come from the guard
	case v.give && v.group && (v.running || v.wait) && v.told == 0:
		r.cause = ErrAsked
	}
}

// explain tells why the command is told to end.
func (r *runner) explain(v view) {
	switch {
	case errors.Is(r.cause, ErrAsked):
		r.Log.Warn("somebody asks for the lock: ending the command", "grace", r.Limits.grace)
	case v.fate == held && v.remaining > r.Limits.grace:
		r.Log.Warn("the command has ended and left processes: ending them", "processes", r.left)
	default:
		r.Log.Warn("ending the command", "err", r.cause, slog.Duration("remaining", v.remaining))
	}
}

// hear takes a report of the guard.
func (r *runner) hear(g report) {
	switch {
	case g.Started != 0:
		r.asked, r.group = false, g.Started
	case g.Late:
		r.asked = false
	case g.Failed != 0:
		r.asked, r.failed = false, g.Failed
	case g.Stopped != 0:
		r.paused, r.warned = g.Stopped, false
		if r.suspend != 0 {
			r.stop()
		}
	case g.Continued:
		r.paused = 0
	case g.Ended != nil:
		r.ended, r.status, r.left, r.paused = true, *g.Ended, g.Left, 0
		r.gone = g.Gone
		if r.WaitDescendants && !r.gone {
			r.Log.Info("the command has ended: its lock stays held until its descendants have ended", "processes", r.left)
		}
	case g.Gone:
		r.gone = true
	case g.Stuck != nil:
		// They cannot be waited for either.
		r.Log.Warn("the command's processes may not be killed, and go on without the lock", "processes", g.Stuck)
		r.ended, r.gone = true, true
	}
}

// lonely ends what the guard has left when it was killed. The kernel has killed the command itself.
func (r *runner) lonely() {
	// If the command has ended before, its number can be that of others.
	t := tree{id: r.group, ended: r.ended, others: r.guard.others, blind: lookAround() != nil}
	r.unguarded, r.ended, r.gone, r.asked = true, true, true, false
	r.reports = nil
	<-r.guard.ended
	for {
		if t.reap(func(syscall.WaitStatus) {}); t.gone() {
			return
		}
		if stuck := t.kill(); len(stuck) > 0 {
			r.Log.Warn("the command's processes may not be killed, and go on without the lock", "processes", stuck)
			return
		}
		<-time.After(killPoll)
	}
}

// tell has the guard send signals to the command's group, or to all descendants.
func (r *runner) tell(all bool, signals ...syscall.Signal) {
	r.guard.tell(order{Signals: signals, All: all})
}

// pass passes a signal on.
func (r *runner) pass(sig syscall.Signal) {
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

// stop stops turnstile after its command. SIGCONT is passed on to the command, so both go on together. Meanwhile nobody
// keeps the lock, and the guard ends the command when the lease does.
func (r *runner) stop() {
	r.suspend, r.warned = 0, true
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
}

// obeyTime is how long a command may take to stop at SIGTSTP.
const obeyTime = time.Second

// settle looks after a command that is stopped, or should be. It reports whether to look again soon.
//
// A command in the background that reads from the terminal is stopped. If turnstile is in the
// foreground, the terminal is given to the command. A command in the foreground is stopped by
// Ctrl-Z. It would keep the lock without working for it, and the shell would not come back, because
// turnstile has to go on for the lock's sake. So the command goes on as well.
//
// Any other command that is stopped stays so, with a warning, until somebody continues or ends it, or its terminal is
// closed.
func (r *runner) settle() (soon bool) {
	reads := r.paused == unix.SIGTTIN || r.paused == unix.SIGTTOU
	switch late := clock() - r.suspend; {
	case r.suspend != 0 && (r.paused != 0 || r.ended || late > 2*obeyTime):
		r.stop()
	case r.suspend != 0 && late > obeyTime && !r.forced:
		r.forced = true
		r.tell(true, unix.SIGSTOP)
	case r.suspend != 0:
		return true
	case r.paused == 0:
		return false
	case reads && r.tty.serves(r.tty.own):
		r.tty.give(r.group)
		r.tell(false, unix.SIGCONT)
		r.paused = 0
	case r.paused != unix.SIGSTOP && r.tty.serves(r.group):
		r.Log.Warn("the command holds a lock and cannot be suspended: it goes on")
		r.tell(false, unix.SIGCONT)
		r.paused = 0
	case r.tty.closed():
		r.Log.Warn("the command was stopped, and its terminal is closed: ending it")
		r.tell(true, unix.SIGHUP, unix.SIGCONT)
		r.paused = 0
	case !r.warned:
		r.warned = true
		r.Log.Warn("a signal has stopped the command, and it still holds the lock: SIGCONT continues it, and SIGTERM ends it",
			"signal", unix.SignalName(r.paused))
	}
	return true
}
