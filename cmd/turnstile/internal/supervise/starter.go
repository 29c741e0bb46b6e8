//go:build linux || darwin || freebsd

package supervise

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// starterName is argument 0 of a starter, by which this program knows that it is one. The arguments are the path of the
// command's program, and the command's own arguments.
//
// A starter is this program again, in the command's place. It is needed only if systemd has passed sockets to turnstile:
// LISTEN_PID has to be the process that uses them, and no process id is known before there is a process.
const starterName = "turnstile-start"

const listenPID = "LISTEN_PID"

func isStarter() bool { return len(os.Args) >= 3 && os.Args[0] == starterName }

// viaStarter returns what to execute for a command.
func viaStarter(path string, args []string) (string, []string) {
	program, err := self()
	if err != nil || os.Getenv(listenPID) != strconv.Itoa(os.Getppid()) {
		return path, args // no sockets, or not for turnstile
	}
	return program, append([]string{starterName, path}, args...)
}

// becomeCommand is the whole life of a starter. It returns its exit status if it does not become the command.
func becomeCommand() int {
	_ = os.Setenv(listenPID, strconv.Itoa(os.Getpid()))
	err := syscall.Exec(os.Args[1], os.Args[2:], os.Environ())
	fmt.Fprintf(os.Stderr, "turnstile: exec %s: %v\n", os.Args[1], err)
	return starterStatus
}

// starterStatus is that of a shell for a command that it cannot execute.
const starterStatus = 126
