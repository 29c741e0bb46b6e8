//go:build linux || darwin || freebsd

package cli

import (
	"syscall"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// Turnstile tells that its command is stopped, and the signals that end a command end it all the same.
func TestRunStoppedCommandEnds(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"STOP": syscall.SIGTERM, "TSTP": syscall.SIGHUP, "TTIN": syscall.SIGINT, "TTOU": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", "kill -"+name+" $$; while :; do sleep 0.02; done")
			p.awaitOutput(t, "SIG"+name)
			p.signal(t, sig)
			p.wait(t, 128+int(sig))
		})
	}
}

// A command that is stopped, and that an operator continues, goes on to its status.
func TestRunStoppedCommandGoesOn(t *testing.T) {
	t.Parallel()
	p := start(t, server(t), "run", testserver.Path(t), "--", "sh", "-c", "kill -STOP $$; exit 7")
	p.awaitOutput(t, "SIGSTOP")
	p.signal(t, syscall.SIGCONT)
	p.wait(t, 7)
}

// A turnstile that is suspended for longer than its lease loses the lock, and the guard has ended the command before that.
func TestRunSuspended(t *testing.T) {
	onBoth(t, func(t *testing.T, server string) {
		path, j := testserver.Path(t), newJournal(t)
		holder := startJob(t, server, shortLease(path, j.forever("A"))...)
		j.await(t, "a")
		rival := start(t, server, "run", path, "--", "sh", "-c", j.once("B")+"; sleep 1")
		holder.signal(t, syscall.SIGTSTP)
		rival.wait(t, 0)
		wantLast(t, j, "B", "A", "a")
		holder.signal(t, syscall.SIGCONT)
		holder.wait(t, codeLost)
		wantLast(t, j, "B", "A", "a")
	})
}

// A turnstile that is told to go on before its command has stopped goes on, with its command.
func TestRunSuspendedAndContinued(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	// The shell has no children that stop.
	script := "mkfifo " + string(j) + ".fifo; exec 3<>" + string(j) + ".fifo; trap '" + j.once("tstp") + "' TSTP; " +
		"while :; do echo A >> " + string(j) + "; read -t 0.02 -u 3; done"
	p := startJob(t, server(t), "run", testserver.Path(t), "--", "bash", "-c", script)
	j.await(t, "A")
	p.signal(t, syscall.SIGTSTP)
	j.await(t, "tstp")
	p.signal(t, syscall.SIGCONT)
	j.goesOn(t)
	p.signal(t, syscall.SIGTERM)
	p.wait(t, 143)
}
