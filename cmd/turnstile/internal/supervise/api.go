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

// Lock is the lock under which a command runs.
type Lock interface {
	Err() error                               // nil while the lock is held, by the clock
	Deleted() bool                            // the session lives on, after Err has returned an error
	Remaining() (left, timeout time.Duration) // how long the lock is certain without an answer, and the session timeout
	Done() <-chan struct{}                    // closed when the lock is lost, or a little later
	Changed() <-chan struct{}                 // has a token when the session may have another timeout; nil: never
}

// Result says how a command has ended.
type Result struct {
	// Status is the exit status, or 128 + n if signal number n has ended the command.
	Status  int
	Started bool
	// Lost is why the command was stopped, or why it is not certain that the lock was held to the
	// end. It is nil if the lock was held while the command or any descendant ran.
	Lost error
	// Interrupted says that Ctrl-C on the terminal has ended the command: see [Interrupt].
	Interrupted bool
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

// Options of Run.
type Options struct {
	Limits Limits
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
