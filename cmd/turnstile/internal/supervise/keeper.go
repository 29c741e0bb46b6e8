//go:build linux || darwin || freebsd

package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeper is what a guard knows.
type keeper struct {
	pipe, alarm, children int    // descriptors: the socket, the deadline, a child has changed; -1: there is none
	in, out               []byte // a line that has not come to its end; what could not be written yet

	until time.Duration // by clock; 0: no deadline
	tree  tree
	kill  bool // all descendants have to die
	done  bool // turnstile has said that all is over
	alone bool // turnstile has ended
	stuck bool // nothing is left but what may not be killed

	toldEnd, toldGone bool // to turnstile

	prepare Prepare
	closer  Closer   // nil: it is not known how to reach the servers
	session *Session // of turnstile; nil: there is none yet
}

// Intervals at which a guard looks at the clock where the system has no alarm, and at descendants that have to die.
const (
	guardPoll = 100 * time.Millisecond
	killPoll  = 10 * time.Millisecond
)

// run returns when turnstile has said so, or when turnstile has ended and nothing is left.
func (k *keeper) run() {
	for {
		// The clock is read before the orders. So a guard that was stopped in between does not act on an old deadline.
		now := clock()
		k.receive()
		// There can be no news of the lock before there is a command. Its start has a deadline of its own.
		if k.until != 0 && now >= k.until && k.tree.id != 0 || k.alone {
			k.kill = true
		}
		k.tree.reap(k.changed)
		if k.kill && !k.tree.gone() {
			if stuck := k.tree.kill(); len(stuck) > 0 && !k.stuck {
				k.stuck = true
				k.report(report{Stuck: stuck})
			}
		}
		k.tellEnd()
		k.flush()
		if k.done || k.alone && (k.tree.gone() || k.stuck) {
			return
		}
		k.wait()
	}
}

// wait returns when there is something to do.
func (k *keeper) wait() {
	ms := -1
	switch {
	case k.kill && !k.tree.gone():
		ms = int(killPoll / time.Millisecond)
	case k.alarm < 0 || k.children < 0:
		ms = int(guardPoll / time.Millisecond)
	case k.until != 0 && k.tree.id != 0 && !k.kill:
		setAlarm(k.alarm, k.until)
	}
	fds := []unix.PollFd{
		{Fd: int32(k.children), Events: unix.POLLIN}, {Fd: int32(k.alarm), Events: unix.POLLIN}, {Fd: int32(k.pipe), Events: unix.POLLIN},
	}
	if k.alone {
		fds[2].Fd = -1
	}
	if len(k.out) > 0 {
		fds[2].Events |= unix.POLLOUT
	}
	_, _ = unix.Poll(fds, ms)
	var buf [64]byte
	for _, fd := range fds[:2] {
		for n := 1; n > 0 && fd.Revents != 0; {
			n, _ = unix.Read(int(fd.Fd), buf[:])
		}
	}
}

// receive carries out all orders that have come.
func (k *keeper) receive() {
	buf := make([]byte, 64<<10)
	for !k.alone {
		n, err := unix.Read(k.pipe, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n <= 0:
			k.alone = !k.done
			return
		}
		k.read(buf[:n])
	}
}

// read takes a part of what turnstile has written.
func (k *keeper) read(part []byte) {
	k.in = append(k.in, part...)
	for {
		first, rest, ok := bytes.Cut(k.in, []byte{'\n'})
		if !ok {
			return
		}
		var o order
		if json.Unmarshal(first, &o) == nil {
			k.obey(o)
		}
		k.in = rest
	}
}

func (k *keeper) obey(o order) {
	if o.Until != 0 {
		k.until = o.Until
	}
	if o.Access != nil {
		k.closer = k.prepare(o.Access)
	}
	if o.Session != nil {
		k.session = o.Session
		k.report(report{Noted: true})
	}
	if o.Start != nil {
		k.start(o.Start)
	}
	for _, sig := range o.Signals {
		_, _ = k.tree.signal(sig, o.All)
	}
	k.kill = k.kill || o.Kill
	k.done = k.done || o.Done
}

// start starts the command in a new process group. The kernel kills the command if the guard dies.
func (k *keeper) start(s *start) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr, unix.SIGKILL)
	if s.Foreground {
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			defer tty.Close()
			attr.Foreground, attr.Ctty = true, int(tty.Fd())
		}
	}
	if k.kill || k.tree.id != 0 || clock() >= s.Deadline {
		k.report(report{Late: true})
		return
	}
	path, args, env := string(s.Path), texts(s.Args), texts(s.Env)
	with := &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: env, Sys: attr}
	if os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getppid()) {
		// systemd has passed sockets to turnstile. LISTEN_PID has to be the process that uses them, and no process id is known
		// before there is a process.
		args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, path}, args[1:]...)
		path = shell
	}
	pid, _, err := syscall.StartProcess(path, args, with)
	if errors.Is(err, unix.ENOEXEC) { // a script without a line "#!": a shell starts it in this way
		pid, _, err = syscall.StartProcess(shell, append([]string{"sh", path}, args[1:]...), with)
	}
	if err != nil {
		errno := unix.EIO
		errors.As(err, &errno)
		k.report(report{Failed: errno})
		return
	}
	k.tree.id = pid
	k.report(report{Started: pid})
	letGo()
}

const shell = "/bin/sh"

// letGo closes all files of turnstile's caller, and leaves its directory, once the command has them.
func letGo() {
	if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup2(null, fd)
		}
		_ = unix.Close(null)
	}
	names, _ := os.ReadDir("/dev/fd")
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd < 3 {
			continue
		}
		// The guard's own files are closed in new processes, and the caller's are not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
	_ = os.Chdir("/")
}

// changed tells turnstile what has become of the command.
func (k *keeper) changed(status syscall.WaitStatus) {
	switch {
	case status.Stopped():
		k.report(report{Stopped: status.StopSignal()})
	case status.Continued():
		k.report(report{Continued: true})
	}
}

// tellEnd tells turnstile once that the command has ended, and once that nothing is left. Mostly that is one report.
func (k *keeper) tellEnd() {
	var r report
	gone := k.tree.ended && k.tree.gone()
	if k.tree.ended && !k.toldEnd {
		r.Ended = &k.tree.status
		if !gone {
			for _, d := range k.tree.descendants() {
				r.Left = append(r.Left, d.String())
			}
		}
	}
	r.Gone = gone && !k.toldGone
	if r.Ended != nil || r.Gone {
		k.report(r)
	}
	k.toldEnd, k.toldGone = k.tree.ended, gone
}

// report writes to turnstile. What a turnstile that is stopped does not take waits.
func (k *keeper) report(r report) { k.out = append(k.out, line(r)...) }

func (k *keeper) flush() {
	for len(k.out) > 0 && !k.alone {
		n, err := unix.Write(k.pipe, k.out)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return // receive sees that turnstile has ended
		}
		k.out = k.out[max(n, 0):]
	}
}

// closeSession closes the session of a turnstile that was killed, so that the next contender need not wait until the session
// times out. It does nothing if a process may be left that works under the lock.
func (k *keeper) closeSession() {
	if !k.alone || !k.tree.gone() || k.closer == nil || k.session == nil {
		return
	}
	letGo()
	ctx, cancel := context.WithTimeout(context.Background(), k.session.Timeout)
	defer cancel()
	k.closer(ctx, *k.session)
}
