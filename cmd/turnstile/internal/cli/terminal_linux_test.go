package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// onTerminal starts a program, such as a shell that starts turnstile, as a shell would in a terminal. What the terminal
// shows comes into the process's stdout.
func onTerminal(t *testing.T, program string, args ...string) (p *process, keyboard *os.File) {
	t.Helper()
	keyboard, screen := openPTY(t)
	defer screen.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	t.Cleanup(func() { keyboard.Close() })
	p = startCommand(t, server(t), cmd)
	go func() { _, _ = io.Copy(p.stdout, keyboard) }()
	return p, keyboard
}

// openPTY returns both ends of a new terminal.
func openPTY(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testserver.Missing(t, err)
	}
	raw, err := keyboard.SyscallConn()
	expect.NoError(t, err)
	var number int
	_ = raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	expect.NoError(t, err)
	screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	expect.NoError(t, err)
	return keyboard, screen
}

func press(t *testing.T, keyboard *os.File, keys string) {
	t.Helper()
	expect.NoError(t, expect.Err(keyboard.WriteString(keys)))
}

// A command can read from the terminal that turnstile was started in. Ctrl-C ends it, and the script that has started
// turnstile.
func TestTerminal(t *testing.T) {
	t.Parallel()
	run := os.Args[0] + " run " + testserver.Path(t) + " -- sh -c 'echo ready; read a; echo got $a; read a'; echo status $?; "
	p, keyboard := onTerminal(t, "bash", "-c", run+run)
	p.prints(t, "ready")
	press(t, keyboard, "one\n")
	p.prints(t, "got one")
	press(t, keyboard, "\x03")
	p.wait(t, -1) // by the signal itself
	if strings.Contains(p.stdout.String(), "status") {
		t.Error("the script has gone on")
	}
}

// Ctrl-Z stops turnstile and its command, and both go on in the foreground.
func TestTerminalSuspend(t *testing.T) {
	t.Parallel()
	path, j, file := testserver.Path(t), newJournal(t), filepath.Join(t.TempDir(), "pid")
	run := os.Args[0] + ` run ` + path + ` -- sh -c "echo \$\$ > ` + file + `; ` + j.loop("A") + `"`
	p, keyboard := onTerminal(t, "bash", "-c", "set -m; "+run+"; echo stopped; read x; fg")
	j.await(t, "A")
	command, turnstile := pidOf(t, file), p.awaitChild(t, os.Args[0])
	press(t, keyboard, "\x1a")
	// A shell that has just forked waits for its child to execute a program, and is not stopped itself while the child is.
	for what, pid := range map[string]int{"turnstile": turnstile, "the command": command} {
		zktest.Eventually(t, patience, what+" is stopped", func() bool { return strings.Contains("TD", stateOf(pid)) })
	}
	p.prints(t, "stopped")
	n := len(j.lines(t))
	press(t, keyboard, "go\n")
	zktest.Eventually(t, patience, "the command works again", func() bool { return len(j.lines(t)) > n })
	press(t, keyboard, "\x03")
	testserver.WaitChildren(t, path, 0)
}
