package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// Exit statuses. They lie below those that a shell gives (126 and up), in a range that commands
// rarely use, so that the status of "turnstile run" is nearly always the command's own.
const (
	codeOK        = 0
	codeNo        = 1
	codeUnusable  = 2
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
	{codeNo, "Done, and the answer is no: check has warnings, nobody holds the lock to break, break was not confirmed, or another contender holds the lock by now."},
	{codeUnusable, "check: no lock can be had, because of the servers or of missing rights."},
	{codeUsage, "The command line is wrong, or does not fit the lock or the servers. Nothing was changed."},
	{codeNotFound, "There is no such node."},
	{codeRefused, "The servers refuse the request or the identity: access control lists."},
	{codeConnect, "No server could be reached in time."},
	{codeLost, "run: the lock was lost, or another client has asked for it, and the command was stopped."},
	{codeBusy, "Another client holds the lock: run --try, or the time of --wait is over."},
	{codeFailed, "Another failure."},
	{codeCannotRun, "run: the command was found, but could not be started."},
	{codeNoCommand, "run: the command was not found."},
}

const meaningOfSignal = "Signal number n has ended turnstile, or the command of run."

// codeError is an error with an exit status.
type codeError struct {
	code int
	err  error // nil: nothing is printed
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// withCode gives an error an exit status. A nil err is an exit status without a message.
func withCode(code int, err error) error { return &codeError{code, err} }

// usageError says that the command line is wrong.
func usageError(err error) error { return withCode(codeUsage, err) }

// usagef is usageError with a text.
func usagef(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

// codeOf returns the exit status for the error of a command whose context was ctx.
func codeOf(ctx context.Context, err error) int {
	var coded *codeError
	var stopped interrupted
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &coded):
		return coded.code
	case errors.As(context.Cause(ctx), &stopped) && errors.Is(err, context.Canceled):
		return codeSignal + int(stopped.sig)
	case errors.Is(err, session.ErrInvalid):
		return codeUsage
	case errors.Is(err, queue.ErrBusy):
		return codeBusy
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return codeRefused
	case errors.Is(err, zk.ErrNoNode):
		return codeNotFound
	case errors.Is(err, session.ErrLost):
		return codeLost
	}
	return codeFailed
}

// exitCodesHelp is the help topic.
func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Turnstile ends with one of these statuses:\n\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "  %5d  %s\n", c.code, c.meaning)
	}
	fmt.Fprintf(&b, "  %d+n  %s\n", codeSignal, meaningOfSignal)
	return b.String()
}
