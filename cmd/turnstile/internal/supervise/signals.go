//go:build linux || darwin || freebsd

package supervise

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signals that end the wait for a lock, those that only matter to the command, and those that stay ignored if the
// caller has ignored them.
var (
	early       = []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}
	later       = []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2}
	keptSignals = []syscall.Signal{unix.SIGTERM, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGALRM}
)

// KeepIgnored ignores the signals that the caller has told this process to ignore, so that the command does too. A program
// calls it before it catches any signal.
func KeepIgnored() {
	mask := ignoredByParent()
	for _, sig := range keptSignals {
		if mask&(1<<(sig-1)) != 0 {
			signal.Ignore(sig)
		}
	}
}

// Catch begins to catch the signals that turnstile passes on to a command. A caller that does so before it waits for a lock
// misses none between the wait and the command. The caller must call stop.
//
// From then on, no SIGPIPE ends the process either: by default the Go runtime ends a process that writes to a standard error
// which nobody reads any more, and a mere warning would cost the lock.
func Catch() (signals chan os.Signal, stop func()) {
	catch(make(chan os.Signal, 1), unix.SIGPIPE)
	signals = make(chan os.Signal, 64)
	catch(signals, early...)
	catch(signals, later...)
	return signals, func() { signal.Stop(signals) }
}

// catch leaves out signals that are ignored, as by nohup. Signals that are of no use to this process are caught and not
// ignored, since the command would inherit that.
func catch(c chan<- os.Signal, signals ...syscall.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}
