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
// ended too, before Run returns, unless [Options] say to wait for them.
//
// Signals that turnstile gets meanwhile go to the command's process group. If turnstile dies or is stopped, the guard
// ends the command. If signals has caught one already, Run does not start the command, and the status tells of
// the signal.
//
// The error matches [ErrStart] if the command could not be started. The lock stays the caller's in
// any case.
func Run(guard *Guard, c Command, lock Lock, signals *Signals, o Options) (Result, error) {
	signals.more()
	if sig, ok := signals.pending(); ok {
		return Result{Status: 128 + int(sig)}, nil
	}
	r := &runner{Options: o, lock: lock, guard: guard, tty: openTerminal(), signals: signals.c, reports: guard.reports}
	if r.tty != nil {
		// The command can have the terminal, and a warning must not stop turnstile then (stty tostop). The guard runs already,
		// so the command does not inherit this.
		signal.Ignore(unix.SIGTTOU)
	}
	if o.Sole {
		if err := adopt(); err != nil {
			r.Log.Warn("processes that leave the command's process group are not found, and can outlive the lock", "err", err)
		}
	}
	r.command = start{
		Path: []byte(c.Path), Args: bytesOf(c.Args), Env: bytesOf(c.Env),
		Foreground: r.tty.mine() && isTerminal(guard.streams.In) && isTerminal(guard.streams.Out),
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
		return Result{}, errUnguarded
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
	tty     *terminal // nil: none
	signals <-chan os.Signal
	reports <-chan report // nil: the guard has ended

	asked  bool           // the guard was told to start the command, and has not answered
	early  syscall.Signal // came before the command was started
	group  int            // of the command; 0: it was not started
	failed syscall.Errno  // the error of the start

	ended  bool // the command has ended
	status syscall.WaitStatus
	left   []string // what it has left
	gone   bool     // that has ended too

	unguarded bool // the guard has ended

	stops
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
			r.take(s)
		case <-lost:
			lost = nil
		case report, ok := <-r.reports:
			r.hear(report, ok)
		case <-r.askedNow():
			r.Asked = nil // it is closed
			r.giveUp()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// step looks at the lock and the command, and acts. It depends on nothing that was seen before turnstile
// was stopped, if it was.
func (r *runner) step() (action, time.Duration) {
	v := view{now: clock(), told: r.told, running: !r.ended, group: !r.gone, wait: r.WaitDescendants, give: r.give}
	var timeout time.Duration
	var err error
	v.fate, v.remaining, timeout, err = fateOf(r.lock)
	r.adapt(timeout)
	r.note(v, err)
	action, wait := r.Limits.decide(v)
	if r.group == 0 && !r.asked && (action != watch || r.told != 0 || r.early != 0 || r.failed != 0 || r.unguarded) {
		return finish, 0 // there is nothing to end
	}
	switch action {
	case terminate:
		r.told, v.told = v.now, v.now
		// A process that is stopped gets SIGTERM when it goes on.
		r.guard.tell(order{Signals: []syscall.Signal{unix.SIGTERM, unix.SIGCONT}, All: true})
		r.explain(v)
	case kill:
		r.kill()
	}
	if action != finish {
		o := order{Until: r.Limits.guardUntil(v)}
		if action == watch && r.group == 0 && !r.asked {
			// If the guard is slow, and less than the grace period remains by then, it says that it is late.
			r.asked = true
			command := r.command
			command.Deadline = v.now + v.remaining - r.Limits.grace
			o.Start = &command
		}
		r.guard.tell(o)
		r.settle()
	}
	return action, wait
}

// askedNow returns Options.Asked. A signal that only the command knows the meaning of has to wait for the command.
func (r *runner) askedNow() <-chan struct{} {
	if r.group == 0 && r.AskedSignal != 0 && !slices.Contains(early, r.AskedSignal) {
		return nil
	}
	return r.Asked
}

// giveUp does what the options say when somebody asks for the lock.
func (r *runner) giveUp() {
	if r.AskedSignal == 0 {
		r.give = true
		return
	}
	r.Log.Warn("somebody asks for the lock: telling the command", "signal", unix.SignalName(r.AskedSignal))
	r.take(r.AskedSignal)
}

// adapt computes the limits anew if the session timeout has changed.
func (r *runner) adapt(timeout time.Duration) {
	before := r.Limits
	r.Limits = before.at(timeout)
	if before.given != 0 && r.Limits.grace != before.grace {
		r.Log.Warn("the servers have changed the session timeout, and the grace period had to follow",
			"timeout", timeout, "grace", r.Limits.grace)
	}
}

// hear takes a report of the guard. more is false when there are no more, since the guard has ended.
func (r *runner) hear(g report, more bool) {
	switch {
	case !more:
		r.lonely()
	case g.Started != 0:
		r.asked, r.group = false, g.Started
	case g.Late:
		r.asked = false
	case g.Failed != 0:
		r.asked, r.failed = false, g.Failed
	case g.Stopped != 0:
		r.stopped(g.Stopped)
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
	t := tree{id: r.group, ended: r.ended && r.Sole, others: r.guard.others, blind: lookAround() != nil}
	r.unguarded, r.ended, r.gone, r.asked = true, true, true, false
	r.reports = nil
	<-r.guard.ended
	for {
		if r.Sole {
			t.reap(func(syscall.WaitStatus) {})
		} else {
			t.childless = errors.Is(unix.Kill(-t.id, 0), unix.ESRCH)
		}
		if t.id == 0 && !r.Sole || t.gone() {
			return
		}
		if stuck := t.kill(r.Sole); len(stuck) > 0 {
			r.Log.Warn("the command's processes may not be killed, and go on without the lock", "processes", stuck)
			return
		}
		<-time.After(killPoll)
	}
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

// kill has the guard kill all descendants until none is left.
func (r *runner) kill() {
	if r.killed {
		return
	}
	r.killed = true
	if r.group != 0 {
		r.Log.Warn("killing the command's processes")
	}
	r.guard.tell(order{Kill: true})
}

// explain tells why the command is told to end.
func (r *runner) explain(v view) {
	if errors.Is(r.cause, ErrAsked) {
		r.Log.Warn("somebody asks for the lock: ending the command", "grace", r.Limits.grace)
		return
	}
	if v.fate == held && v.remaining > r.Limits.grace {
		r.Log.Warn("the command has ended and left processes: ending them", "processes", r.left)
		return
	}
	r.Log.Warn("ending the command", "err", r.cause, slog.Duration("remaining", v.remaining))
}
