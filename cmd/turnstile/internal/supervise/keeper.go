//go:build linux || darwin || freebsd

package supervise

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// IsHelper reports whether this process is a guard. Then it must call [Helper] and nothing else.
func IsHelper() bool { return len(os.Args) == 2 && os.Args[0] == guardName }

// Helper is the whole life of a guard. It returns the exit status. Free is called with the latest note if turnstile has
// died, when the command and its descendants are dead. It is not called if a process may be left that works under the lock.
func Helper(free func(note json.RawMessage)) int {
	// The command dies with the thread that has started it: see keeper.start.
	runtime.LockOSThread()
	rename(guardName)
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return 1
	}
	unix.CloseOnExec(fd)
	_ = unix.SetNonblock(fd, true)
	KeepIgnored()
	catch(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	_ = Adopt() // turnstile has done that too
	k := &keeper{pipe: os.NewFile(uintptr(fd), "turnstile")}
	k.run()
	if k.alone && k.tree.gone() && k.note != nil {
		letGo()
		free(k.note)
	}
	return 0
}

// keeper is what a guard knows.
type keeper struct {
	pipe  *os.File
	until time.Duration // by clock; 0: no deadline
	tree  tree
	kill  bool // all descendants have to die
	done  bool // turnstile has said that all is over
	alone bool // turnstile has ended
	stuck bool // nothing is left but what may not be killed
	note  json.RawMessage

	toldEnd, toldGone bool // to turnstile
}

const killPoll = 10 * time.Millisecond // between two looks at descendants that have to die

// run returns when turnstile has said so, or when turnstile has ended and nothing is left.
func (k *keeper) run() {
	orders := lines[order](k.pipe)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	for late := false; ; {
		k.tree.reap()
		if k.kill && !k.tree.gone() {
			if stuck := k.tree.kill(); len(stuck) > 0 && !k.stuck {
				k.stuck = true
				k.report(report{Stuck: stuck})
			}
		}
		k.tellEnd()
		if k.done || k.alone && (k.tree.gone() || k.stuck) {
			return
		}
		wait := time.Hour
		switch {
		case k.kill && !k.tree.gone(), late:
			wait = killPoll
		case k.until != 0 && !k.kill:
			wait = max(k.until-clock(), 0)
		}
		select {
		case o, ok := <-orders:
			if late = false; ok {
				k.obey(o)
			} else {
				orders, k.alone, k.kill = nil, true, true
			}
		case <-children:
		case <-time.After(wait):
			// A guard that was stopped may have orders to read that are newer than this deadline. So it waits once more.
			past := k.until != 0 && clock() >= k.until
			k.kill, late = k.kill || late && past, past
		}
	}
}

func (k *keeper) obey(o order) {
	if o.Until != 0 {
		k.until = o.Until
	}
	if o.Note != nil {
		k.note = o.Note
	}
	if o.Start != nil {
		k.start(o.Start)
	}
	for _, sig := range o.Signals {
		k.tree.signal(sig, o.All)
	}
	k.kill = k.kill || o.Kill
	k.done = k.done || o.Done
}

// start starts the command. The kernel kills the command if the guard dies.
func (k *keeper) start(s *start) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: s.Group}
	dieWithParent(attr, unix.SIGKILL)
	if k.kill || clock() >= k.until {
		k.report(report{Late: true})
		return
	}
	path, args, env := string(s.Path), strings.Split(string(s.Args), "\x00"), strings.Split(string(s.Env), "\x00")
	with := &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: env, Sys: attr}
	pid, _, err := syscall.StartProcess(path, args, with)
	if errors.Is(err, unix.ENOEXEC) { // a script without a line "#!": a shell starts it in this way
		pid, _, err = syscall.StartProcess("/bin/sh", append([]string{"sh", path}, args[1:]...), with)
	}
	if err != nil {
		errno := unix.EIO
		errors.As(err, &errno)
		k.report(report{Failed: errno})
		return
	}
	k.tree.id, k.tree.shared = pid, s.Group != 0
	k.report(report{Started: pid})
	letGo()
}

// letGo closes the streams of turnstile's caller, once the command has them: who reads them waits for the command alone.
func letGo() {
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup2(null, fd)
		}
		_ = unix.Close(null)
	}
}

// tellEnd tells turnstile once that the command has ended, and once that nothing is left. Mostly that is one report.
func (k *keeper) tellEnd() {
	gone := k.tree.gone()
	if !k.tree.ended || k.toldEnd && gone == k.toldGone {
		return
	}
	k.report(report{Ended: &k.tree.status, Gone: gone, Left: leftovers()})
	k.toldEnd, k.toldGone = true, gone
}

// report writes to turnstile. All reports fit into the socket of a turnstile that is stopped.
func (k *keeper) report(r report) { _ = json.NewEncoder(k.pipe).Encode(r) }
