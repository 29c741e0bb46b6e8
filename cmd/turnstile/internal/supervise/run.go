//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is the lock under which a command runs.
type Lock interface {
	Err() error                               // nil while the lock is held, by the clock
	Deleted() bool                            // the session lives on, after Err has returned an error
	Remaining() (left, timeout time.Duration) // how long the lock is certain without an answer, and the session timeout
	Done() <-chan struct{}                    // closed when the lock is lost, or a little later
}

// Result says how a command has ended.
type Result struct {
	// Status is the exit status, or 128 + n if signal number n has ended the command, or has kept Run from starting it.
	Status  int
	Started bool
	// Lost is why the command was ended or not started, or why it is not certain that the lock was held to the
	// end. It is nil if the lock was held while the command or any descendant ran.
	Lost error
}

var (
	// ErrStart is returned by Run, with the cause, if the command could not be started.
	ErrStart = errors.New("cannot start the command")
	// ErrAsked is matched by [Result.Lost] if the command was ended because somebody asked for the lock.
	ErrAsked = errors.New("somebody has asked for the lock")
	// ErrUnguarded is returned by Run if the command's guard was killed. The command is killed then.
	ErrUnguarded = errors.New("the command's guard was killed, and so was the command")
	// errEnding is the cause of a loss that has not happened: the command was stopped before.
	errEnding = errors.New("no server has answered in time, and the lock's lease was about to end")
)

// Options say what to run, and how.
type Options struct {
	Path  string   // of the program
	Args  []string // the first is the program's name
	Env   []string
	Grace time.Duration   // 0: the default
	Asked <-chan struct{} // closed when somebody asks for the lock: the command and its descendants are ended then
	Log   *slog.Logger    // warnings tell people what happens to the command
}

// Run runs a command while a lock is held. The guard must be new. Run returns when neither the command nor any descendant
// runs any more. If the lock is lost, or about to be, it ends them: see [Limits]. Processes that the command leaves are
// ended too, before Run returns. The process must have no other children than the guard and those that it had when the guard
// was started.
//
// Signals that turnstile gets meanwhile go to the command's process group. If turnstile dies or is stopped, the guard
// ends the command. If signals has caught one already, Run does not start the command, and the status tells of
// the signal.
//
// The error matches [ErrStart] if the command could not be started. The lock stays the caller's in
// any case.
func Run(guard *Guard, lock Lock, signals <-chan os.Signal, o Options) (Result, error) {
	r := &runner{Options: o, lock: lock, guard: guard, signals: signals}
	if err := r.ready(); err != nil || r.early != 0 || r.cause != nil {
		return Result{Status: 128 + int(r.early), Lost: r.cause}, err
	}
	r.start()
	for lost := lock.Done(); !r.gone; {
		select {
		case s := <-r.signals:
			r.pass(s)
		case <-lost:
			lost = nil
		case <-r.Asked:
			r.Asked, r.give = nil, true // it is closed
		case g, ok := <-guard.reports:
			if !ok {
				r.lonely()
				if r.cause = lock.Err(); r.cause != nil {
					return Result{Started: r.group != 0, Lost: r.cause}, nil
				}
				return Result{}, ErrUnguarded
			}
			r.hear(g)
		case <-time.After(r.wait):
		}
		r.step()
	}
	status := r.status.ExitStatus()
	if r.status.Signaled() {
		status = 128 + int(r.status.Signal())
	}
	return Result{Status: status, Started: r.group != 0, Lost: r.cause}, r.failed
}

// warn never blocks: nobody may read the standard error, and there is a lock to look after.
func (r *runner) warn(text string, args ...any) { go r.Log.Warn(text, args...) }

// runner is one call of Run.
type runner struct {
	Options
	lock    Lock
	guard   *Guard
	signals <-chan os.Signal

	early  syscall.Signal // came before the command was started
	group  int            // the process id of the command; 0: it was not started
	shared bool           // the command is in turnstile's process group, which a terminal serves

	ended  bool // the command has ended
	status syscall.WaitStatus
	left   []string // what it has left
	gone   bool     // that has ended too

	wait   time.Duration // until the next look at the latest
	give   bool          // somebody has asked for the lock
	told   time.Duration // when the command got SIGTERM
	killed bool
	cause  error // of the loss
	failed error // the command could not be started

	until, toldUntil time.Duration // the guard's deadline, and when it was told
}

// ready waits until the lock is certain for long enough to start a command. The heartbeats of a session see to that soon
// after its first lock, unless the servers answer too slowly.
func (r *runner) ready() error {
	_, first := r.lock.Remaining()
	for late := time.After(first); ; {
		left, timeout := r.lock.Remaining()
		limits, err := NewLimits(r.Grace, timeout)
		if r.cause = r.lock.Err(); r.cause != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("--grace does not fit the session timeout: %w", err)
		}
		select {
		case s := <-r.signals:
			if sig, ok := s.(syscall.Signal); ok && slices.Contains(early, sig) {
				r.early = sig
				return nil
			}
		case <-r.Asked:
			r.cause = ErrAsked
			return nil
		case <-late:
			return fmt.Errorf("the servers answer so slowly that the command would be ended at once: with a grace period of %v the lock has to be certain for %v, and it is for %v",
				limits.grace, limits.start(), left)
		default:
			if left > limits.start() {
				return nil
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}

// start has the guard start the command. On a terminal, it is in turnstile's own process group: so it can read from the
// terminal, and Ctrl-C and Ctrl-Z reach it as they do without turnstile.
func (r *runner) start() {
	s := &start{Path: []byte(r.Path), Args: []byte(strings.Join(r.Args, "\x00")), Env: []byte(strings.Join(r.Env, "\x00"))}
	if _, err := Foreground(); err == nil {
		r.shared, s.Group = true, unix.Getpgrp()
	}
	limits, v := r.look()
	_, kill, _ := limits.decide(v)
	r.guard.tell(order{Until: kill + limits.reserve/2, Start: s})
}

// look looks at the lock and the command. What it returns depends on nothing that was seen before turnstile was stopped, if
// it was.
func (r *runner) look() (Limits, view) {
	v := view{now: clock(), told: r.told, running: !r.ended, give: r.give}
	left, timeout := r.lock.Remaining()
	limits, _ := NewLimits(r.Grace, timeout)
	err := r.lock.Err()
	switch v.lost = err != nil; {
	case !v.lost:
		v.remaining = left
	case r.lock.Deleted():
		v.remaining = timeout
	}
	// If the lock is lost when the end of the command is noticed, nobody knows which was first.
	switch {
	case r.cause != nil:
	case err != nil:
		r.cause = err
	case v.remaining <= limits.grace && (!r.gone || r.status.Signal() == unix.SIGKILL):
		r.cause = errEnding // SIGKILL can have come from the guard
	case v.give && v.running && v.told == 0:
		r.cause = ErrAsked
	}
	return limits, v
}

// step looks, and acts.
func (r *runner) step() {
	limits, v := r.look()
	if r.gone {
		return
	}
	end, kill, wait := limits.decide(v)
	r.wait = wait
	switch {
	case kill <= v.now:
		switch {
		case !r.killed:
			r.warn("killing the command's processes")
			r.guard.tell(order{Kill: true})
		case r.group == 0: // the guard hangs
			_ = r.guard.process.Kill()
		}
		r.killed = true
	case end:
		r.told = v.now
		r.guard.tell(order{Signals: []syscall.Signal{unix.SIGTERM, unix.SIGCONT}, All: true}) // one that is stopped gets SIGTERM when it goes on
		switch {
		case errors.Is(r.cause, ErrAsked):
			r.warn("somebody asks for the lock: ending the command", "grace", limits.grace)
		case !v.lost && v.remaining > limits.grace:
			r.warn("the command has ended and left processes: ending them", "processes", r.left)
		default:
			r.warn("ending the command", "err", r.cause, slog.Duration("remaining", kill-v.now))
		}
	}
	// The guard acts a little later than turnstile, and still before the lock's end.
	if until := kill + limits.reserve/2; until < r.until || v.now-r.toldUntil >= limits.timeout/idlePart {
		r.until, r.toldUntil = until, v.now
		r.guard.tell(order{Until: until})
	}
}

// hear takes a report of the guard.
func (r *runner) hear(g report) {
	switch {
	case g.Started != 0:
		r.group = g.Started
	case g.Failed != 0:
		r.failed, r.gone = fmt.Errorf("%w: %w", ErrStart, &os.PathError{Op: "exec", Path: r.Path, Err: g.Failed}), true
	case g.Late:
		r.cause, r.gone = errEnding, true
	case g.Ended != nil:
		r.ended, r.status, r.left, r.gone = true, *g.Ended, g.Left, g.Gone
	case g.Stuck != nil: // they cannot be waited for either
		r.warnStuck(g.Stuck)
		r.gone = true
	}
}

func (r *runner) warnStuck(processes []string) {
	r.warn("the command's processes may not be killed, and go on without the lock", "processes", processes)
}

// lonely ends what the guard has left when it was killed. The kernel has killed the command itself.
func (r *runner) lonely() {
	<-r.guard.Ended
	// If the command has ended before, its number can be that of others.
	t := tree{id: r.group, shared: r.shared, ended: r.ended}
	for t.reap(); !t.gone(); t.reap() {
		if stuck := t.kill(); len(stuck) > 0 {
			r.warnStuck(stuck)
			return
		}
		<-time.After(killPoll)
	}
}

// pass passes a signal on. Ctrl-C has reached a command on the terminal already.
func (r *runner) pass(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	fore, _ := Foreground()
	switch {
	case !ok, r.shared && fore && (sig == unix.SIGINT || sig == unix.SIGQUIT):
	case slices.Contains(early, sig):
		// A command usually ends at these. One that is stopped gets them when it goes on, so SIGCONT follows, as with the
		// kill of a shell.
		r.guard.tell(order{Signals: []syscall.Signal{sig, unix.SIGCONT}, All: r.ended})
	default:
		r.guard.tell(order{Signals: []syscall.Signal{sig}, All: r.ended})
	}
}

// Foreground reports whether the terminal of this process serves its process group. It fails if there is no terminal.
func Foreground() (bool, error) {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false, err
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return group == unix.Getpgrp(), err
}
