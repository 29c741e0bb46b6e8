//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Supported returns nil: Run is supported on this system.
func Supported() error { return nil }

// copyDelay bounds how long streams that are not files are copied after the command's end.
const copyDelay = time.Second

// Run runs a command, in a process group of its own, while a lock is held. It returns when no process
// of the group runs any more. If the lock is lost, or about to be, it ends the group: see
// [Limits]. Processes that the command leaves in its group are ended too, before Run returns.
//
// Signals that turnstile gets meanwhile go to the group. If turnstile dies or is stopped, the guard
// ends the group. If signals has caught one already, Run does not start the command, and the status tells of
// the signal.
//
// The error matches [ErrStart] if the command could not be started. The lock stays the caller's in
// any case.
func Run(c Command, lock Lock, signals *Signals, o Options) (Result, error) {
	signals.more()
	if sig, ok := signals.pending(); ok {
		return Result{Status: 128 + int(sig)}, nil
	}
	adopt()
	guard, err := startGuard()
	if err != nil {
		return Result{}, err
	}
	r := &runner{Options: o, lock: lock, guard: guard, tty: openTerminal(), signals: signals.c}
	var give *terminal
	if r.tty.mine() && isTerminal(c.In) && isTerminal(c.Out) {
		give = r.tty
	}
	if r.group, err = startGroup(c, give); err != nil {
		guard.end()
		r.tty.takeBack(give != nil, false)
		return Result{}, err
	}
	r.lines = r.group.lines
	_ = guard.tell(lineGroup, int64(r.group.id))
	r.loop()
	for r.later = nil; r.lines != nil; {
		line, ok := <-r.lines // the loop can notice the end of a starter before its last line
		r.hear(line, ok)
	}
	r.guard.end()
	r.group.starter.close()
	return r.result()
}

// result tells how the command has ended.
func (r *runner) result() (Result, error) {
	given := r.tty.serves(r.group.id)
	r.tty.takeBack(given, r.group.status.Signaled())
	status, err := r.group.exitStatus()
	switch {
	case err != nil:
		return Result{}, err
	case r.failed != 0:
		return Result{}, fmt.Errorf("%w: %w", ErrStart, &os.PathError{Op: "exec", Path: r.group.path, Err: r.failed})
	case r.unguarded != nil:
		return Result{}, fmt.Errorf("%w: %w", errUnguarded, r.unguarded)
	case !r.started && r.cause == nil && !r.group.status.Signaled():
		return Result{}, fmt.Errorf("%w: its starter has ended with status %d", ErrStart, status)
	}
	return Result{
		Status: status, Started: r.started, Lost: r.cause,
		Interrupted: given && r.group.status.Signal() == unix.SIGINT,
	}, nil
}

// runner is one call of Run.
type runner struct {
	Options
	lock    Lock
	guard   *guard
	group   *group
	tty     *terminal // nil: none
	signals <-chan os.Signal

	lines   chan string      // from the starter; nil: it has ended, or is the command
	ready   bool             // the starter waits for a deadline
	started bool             // it has got one, and has not reported that it was late
	failed  syscall.Errno    // of execve
	later   []syscall.Signal // for the command, once it has taken the starter's place

	unguarded error // why there is no guard
	brief     int   // how many guards in a row have ended soon

	paused bool          // a terminal has stopped the command
	told   time.Duration // when the group got SIGTERM
	killed bool
	cause  error // of the loss
}

// loop returns when no process of the group runs any more.
func (r *runner) loop() {
	ended, lost := r.group.ended, r.lock.Done()
	for {
		guardEnded := r.guard.ended
		if r.unguarded != nil {
			guardEnded = nil
		}
		action, wait := r.step()
		if action == finish {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case s := <-r.signals:
			r.take(s)
		case <-ended:
			ended = nil
		case <-lost:
			lost = nil
		case line, ok := <-r.lines:
			r.hear(line, ok)
		case <-guardEnded:
			r.guardAgain()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// step looks at the lock and the group, and acts. It depends on nothing that was seen before turnstile
// was stopped, if it was.
func (r *runner) step() (action, time.Duration) {
	if r.Sole {
		reapOrphans(r.group.id, r.guard.cmd.Process.Pid)
	}
	v := view{now: clock(), told: r.told}
	var timeout time.Duration
	var err error
	v.fate, v.remaining, timeout, err = fateOf(r.lock)
	r.adapt(timeout)
	v.running = r.group.running()
	v.group = r.group.anyone(r.killed)
	r.note(v, err)
	v.unguarded = r.unguarded != nil
	action, wait := r.Limits.decide(v)
	if action == terminate && !r.started {
		action = kill // a starter has nothing to clean up
	}
	switch action {
	case terminate:
		r.told = v.now
		v.told = v.now
		_ = r.group.signal(unix.SIGTERM)
		_ = r.group.signal(unix.SIGCONT) // a stopped process gets SIGTERM when it goes on
		r.explain(v)
	case kill:
		if !r.kill(v) {
			return finish, 0
		}
	}
	if action != finish {
		told := r.guard.tell(lineUntil, int64(r.Limits.guardUntil(v)))
		if action == watch && r.ready && told == nil && r.unguarded == nil {
			r.start(v)
		}
		r.settle()
	}
	return action, wait
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

// start tells the starter to become the command. If it is slow to, and less than the grace period
// remains by then, it reports that it is ready again.
func (r *runner) start(v view) {
	if r.group.start(v.now+v.remaining-r.Limits.grace) == nil {
		r.ready, r.started = false, true
	}
}

// hear takes a line of the starter. more is false after the last one.
func (r *runner) hear(line string, more bool) {
	errno, failed := failure(line)
	switch {
	case !more:
		r.lines, r.ready = nil, false
		for _, sig := range r.later {
			_ = r.group.signal(sig)
		}
	case failed:
		r.failed = errno
	case line == lineReady:
		r.ready, r.started = true, false
	}
}

// A guard that ends sooner than this is one of those that cannot run.
const (
	briefGuard  = time.Second
	briefGuards = 5
)

// guardAgain starts another guard in place of one that has ended. If that fails, the command is ended:
// nothing would end it in time if turnstile were stopped.
func (r *runner) guardAgain() {
	r.guard.pipe.Close()
	if clock()-r.guard.began < briefGuard {
		r.brief++
	} else {
		r.brief = 0
	}
	if r.brief >= briefGuards {
		r.unguarded = errors.New("its guards end at once")
		return
	}
	guard, err := startGuard()
	if err != nil {
		r.unguarded = err
		return
	}
	r.guard = guard
	_ = guard.tell(lineGroup, int64(r.group.id)) // step tells the deadline
	r.Log.Warn("the command's guard was killed: another one has been started")
}

// note keeps the cause of a loss. If the lock is lost when the end of the command is noticed, nobody
// knows which was first.
func (r *runner) note(v view, err error) {
	switch {
	case r.cause != nil:
	case err != nil:
		r.cause = err
	case v.remaining <= r.Limits.grace && (v.group || r.group.status.Signal() == unix.SIGKILL):
		r.cause = errEnding // SIGKILL can have come from the guard
	}
}

// kill sends SIGKILL. It reports whether there is anything to wait for.
func (r *runner) kill(v view) bool {
	err := r.group.signal(unix.SIGKILL)
	if !r.killed {
		r.killed = true
		if r.started {
			r.Log.Warn("killing the command's processes", "err", err)
		}
	}
	// Processes that may not be killed, such as those of another user, cannot be waited for either.
	return v.running || !errors.Is(err, unix.EPERM)
}

// explain tells why the group is told to end.
func (r *runner) explain(v view) {
	switch {
	case v.fate == held && v.remaining > r.Limits.grace && r.unguarded == nil:
		r.Log.Warn("the command has ended and left processes in its group: ending them")
	case r.unguarded != nil && v.fate == held:
		r.Log.Warn("ending the command: it has no guard", "err", r.unguarded)
	default:
		r.Log.Warn("ending the command", "err", r.cause, slog.Duration("remaining", v.remaining))
	}
}

// take passes a signal on.
func (r *runner) take(s os.Signal) {
	if s == unix.SIGCHLD {
		return // step looks around
	}
	sig, ok := s.(syscall.Signal)
	switch {
	case !ok:
	case r.lines != nil && !slices.Contains(early, sig):
		r.later = append(r.later, sig) // they mean nothing to a starter
	default:
		_ = r.group.signal(sig)
	}
}

// settle keeps a command alive that a terminal has stopped.
//
// A command in the background that reads from the terminal is stopped. If turnstile is in the
// foreground, the terminal is given to the command. A command in the foreground is stopped by
// Ctrl-Z. It would keep the lock without working for it, and the shell would not come back, because
// turnstile has to go on for the lock's sake. So the command goes on as well.
func (r *runner) settle() {
	if r.tty == nil || !r.group.running() {
		return
	}
	r.paused = r.group.stopped() || r.paused
	switch {
	case !r.paused:
		return
	case r.tty.mine():
		r.tty.give(r.group.id)
	case r.tty.serves(r.group.id):
		r.Log.Warn("the command holds a lock and cannot be suspended: it goes on")
	default:
		return // until the shell has brought turnstile to the foreground
	}
	r.paused = false
	_ = r.group.signal(unix.SIGCONT)
}
