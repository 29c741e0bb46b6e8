package supervise

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"
)

// Command is what to run.
type Command struct {
	Path string   // of the program
	Args []string // the first is the program's name
	Env  []string
}

// Session is what it takes to close a session of ZooKeeper.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration
	Server   string // that turnstile is connected to
}

// Result says how a command has ended.
type Result struct {
	// Status is the exit status, or 128 + n if signal number n has ended the command.
	Status int
	// Started says that the command was started.
	Started bool
	// Lost is why the command was stopped, or why it is not certain that the lock was held to the
	// end. It is nil if the lock was held while the command or any descendant ran.
	Lost error
	// Interrupted says that Ctrl-C on the terminal has ended the command: see [Interrupt].
	Interrupted bool
}

// ErrStart is returned by Run, with the cause, if the command could not be started.
var ErrStart = errors.New("cannot start the command")

// ErrAsked is matched by [Result.Lost] if the command was ended because somebody asked for the lock.
var ErrAsked = errors.New("somebody has asked for the lock")

// errUnguarded is returned by Run if the command's guard was killed. The command is killed then.
var errUnguarded = errors.New("the command's guard was killed, and so was the command")

// errEnding is the cause of a loss that has not happened: the command was stopped before.
var errEnding = errors.New("no server has answered in time, and the lock's lease was about to end")

// Options of Run.
type Options struct {
	Limits Limits
	Sole   bool // the process has no children but the guard, and Run may reap all others
	// WaitDescendants keeps Run from ending processes that the command leaves. Run waits for them.
	WaitDescendants bool
	// Asked, if not nil, is closed when somebody asks for the lock. Run then sends AskedSignal to the command. If that
	// is 0, Run ends the command and its descendants, with a grace period.
	Asked       <-chan struct{}
	AskedSignal syscall.Signal
	Log         *slog.Logger // warnings tell people what happens to the command
}

// Prepare returns a Closer for what turnstile has told [Guard.Access], or nil if that is of no use. The guard calls it at
// once, while it has the directory of turnstile.
type Prepare func(access []byte) Closer

// Closer closes a session of turnstile on the servers. It returns when a server has confirmed that, or when ctx ends.
type Closer func(ctx context.Context, s Session)
