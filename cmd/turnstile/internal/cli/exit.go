package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Exit statuses. They lie below those that a shell gives (126 and up), in a range that commands
// rarely use, so that the status of "turnstile run" is nearly always the command's own.
const (
	codeOK        = 0
	codeNo        = 1
	codeUnusable  = 2
	codeSkipped   = 117
	codeNoRoom    = 118
	codeUsage     = 119
	codeNotFound  = 120
	codeRefused   = 121
	codeConnect   = 122
	codeLost      = 123
	codeBusy      = 124
	codeFailed    = 125
	codeCannotRun = 126
	codeNoCommand = 127
	codeSignal    = 128
)

// codes is the one list of exit statuses, for the help and for docs/command.md.
var codes = []struct {
	code    int
	meaning string
}{
	{codeOK, "Done. For run: the command's own status, this or any other."},
	{codeNo, "Done, and the answer is no: check has warnings, jobs has found one that is overdue, nobody holds the lock to break, or break was not confirmed."},
	{codeUnusable, "check: no lock can be had. Also, for all: Go's runtime has ended turnstile, since the system refused it a thread or memory."},
	{codeSkipped, "run --once: nothing was run, and nothing will be for this tick: a later one has begun, its tries are used up, or it was done long ago."},
	{codeNoRoom, "run: the system refuses another process, a thread or memory."},
	{codeUsage, "The command line is wrong, or does not fit the lock or the servers. Nothing was changed."},
	{codeNotFound, "There is no such node."},
	{codeRefused, "The servers refuse the request or the identity: access control lists."},
	{codeConnect, "No server could be reached in time."},
	{codeLost, "run: the lock was lost, or another client has asked for it, and the command was ended."},
	{codeBusy, "Another client holds the lock: the time of --wait is over. --busy-status names another status."},
	{codeFailed, "Another failure."},
	{codeCannotRun, "run: the command was found, but could not be started."},
	{codeNoCommand, "run: the command was not found."},
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Turnstile ends with one of these statuses:\n\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "  %5d  %s\n", c.code, c.meaning)
	}
	fmt.Fprintf(&b, "  %d+n  Signal number n has ended turnstile, or the command of run.\n", codeSignal)
	return b.String()
}

// codeError is an error with an exit status. One without a text is only that.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }
func (e *codeError) Unwrap() error { return e.err }

var errSilent = errors.New("")

// withCode gives an error an exit status. A nil err is an exit status without a message.
func withCode(code int, err error) error {
	if err == nil {
		err = errSilent
	}
	return &codeError{code, err}
}

// usagef says that the command line is wrong.
func usagef(format string, args ...any) error {
	return withCode(codeUsage, fmt.Errorf(format, args...))
}

// codeOf returns the exit status for the error of a command whose context was ctx.
func codeOf(ctx context.Context, err error) int {
	var coded *codeError
	var stopped interrupted
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &coded):
		return coded.code
	case errors.As(context.Cause(ctx), &stopped) && (errors.Is(err, context.Canceled) || errors.As(err, &stopped)):
		return codeSignal + int(stopped.sig)
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{session.ErrInvalid, codeUsage}, {queue.ErrBusy, codeBusy},
		{zk.ErrNoAuth, codeRefused}, {zk.ErrAuthFailed, codeRefused}, {zk.ErrInvalidACL, codeRefused},
		{locks.ErrUnreachable, codeConnect}, {zk.ErrNoNode, codeNotFound}, {session.ErrLost, codeLost},
		{syscall.EAGAIN, codeNoRoom}, {syscall.ENOMEM, codeNoRoom},
	} {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return codeFailed
}

// cannotStart gives the error of a command or a guard that cannot be started the status that env gives it.
func cannotStart(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return withCode(codeNoRoom, fmt.Errorf("%w: the system has no room for another process, thread or memory. See ulimit -u, and pids.max and memory.max of the control group", err))
	case errors.Is(err, os.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return withCode(codeNoCommand, err)
	}
	return withCode(codeCannotRun, err)
}

// plain returns an error of a request about a path in plain words.
func (a *App) plain(path string, err error) error {
	switch {
	case err == nil, errors.As(err, new(*codeError)):
		return err
	case errors.Is(err, session.ErrTooLong):
		return fmt.Errorf("%s. zkCli.sh shows it if the environment has CLIENT_JVMFLAGS=-Djute.maxbuffer=1000000000. Delete nodes that nobody needs, or name a path below", clean(err.Error()))
	case errors.Is(err, zk.ErrNoNode):
		return withCode(codeNotFound, fmt.Errorf("%s does not exist. Either nobody has used a lock there for a while, since servers remove empty directories, or the path is wrong", path))
	case errors.Is(err, zk.ErrNoAuth):
		return refused(path, toRead, err)
	case errors.Is(err, locks.ErrUnreachable):
		return withCode(codeConnect, fmt.Errorf("%s. If it is long and the network slow, a longer --timeout gives it more time", clean(err.Error())))
	}
	return err
}
