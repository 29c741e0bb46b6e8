//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// begin is what a process does before all else. If it is a guard, that is all, and code is its exit status.
func begin() (code int, over bool) {
	if supervise.IsHelper() {
		return supervise.Helper(free), true
	}
	supervise.KeepIgnored()
	return 0, false
}

// end ends this process as Ctrl-C does if that has ended its command. Otherwise a shell script that has started it would go on.
func end(code int) int {
	if fore, _ := supervise.Foreground(); fore && code == codeSignal+int(syscall.SIGINT) {
		signal.Reset(syscall.SIGINT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-time.After(time.Second) // another thread may be the one that gets it
	}
	return code
}

type runFlags struct {
	read, write bool
	slots       int
	wait        time.Duration // negative: without a bound; 0: a try
	quiet       bool
	busyStatus  int
	grace       time.Duration // 0: the default
	label       string
	once        string
	tries       int // 0: without a bound

	tick   time.Time     // of --once
	period time.Duration // of --once with a duration, and a day for a date; 0: not known
}

func runCommand(a *App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PATH -- COMMAND [ARGUMENT...]",
		Short: "Hold a lock while a command runs",
		Long: `Run waits for the lock at PATH, a mutex unless --read, --write or --slots says otherwise, runs a
command, and releases the lock when the command has ended. The exit status is the command's: see
"turnstile help exit-codes". All users of a path must use the same kind of lock.

The command and all of its descendants are ended before another client can hold the lock: if no
server answers, another client asks for the lock ("turnstile break"), or turnstile itself is
stopped or killed. Processes that the command leaves are ended too.

With --once many machines have the same line in their crontabs, and one of them runs the
command. TICK names the run that is due: "today" or a date, in local time; a duration that
divides the day, such as 1h, in UTC; or an RFC 3339 time. PATH/lock is the lock then.

The command's environment has TURNSTILE_PATH, TURNSTILE_TICK with --once, and
TURNSTILE_TOKEN, the fencing token, which is higher than that of every holder before.`,
		Example: `  turnstile run --wait 0 --quiet --busy-status 0 /jobs/backup -- ./backup.sh
  turnstile run --once today --wait 6h /jobs/report -- ./report.sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, args); err != nil {
				return err
			}
			err := a.run(cmd.Context(), f, args)
			var coded *codeError
			if errors.As(err, &coded) && coded.code == codeBusy {
				if err = withCode(f.busyStatus, coded); f.quiet {
					err = withCode(f.busyStatus, nil)
				}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.read, "read", false, "hold a read lock: readers share it, a writer (--write) excludes them")
	flags.BoolVar(&f.write, "write", false, "hold the write lock of a read-write lock")
	flags.IntVar(&f.slots, "slots", 0, "hold one of `n` leases of a semaphore")
	flags.DurationVar(&f.wait, "wait", -1, "wait for servers and lock for this long at most; 0: do not wait")
	flags.Lookup("wait").DefValue = ""
	flags.IntVar(&f.busyStatus, "busy-status", codeBusy, "exit `status` if another client holds the lock")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing if another client holds the lock")
	flags.DurationVar(&f.grace, "grace", 0, "time for the command to end before the lease does, a 20th to a quarter of the session timeout (default: a fifth)")
	flags.StringVar(&f.label, "label", "", "what the lock is held for, for others to see")
	flags.StringVar(&f.once, "once", "", "run once for this `tick`: today, a date, 1h, or an RFC 3339 time")
	flags.IntVar(&f.tries, "max-tries", 0, "with --once, begin a tick `n` times at most; 1: at most once")
	cmd.MarkFlagsMutuallyExclusive("read", "write", "slots", "once")
	return cmd
}

// check looks for errors before any I/O, and completes the flags.
func (f *runFlags) check(cmd *cobra.Command, args []string) (err error) {
	given := cmd.Flags().Changed
	switch {
	case cmd.ArgsLenAtDash() != 1:
		return usagef("want one path, then --, then a command: turnstile run PATH -- COMMAND")
	case len(args) < 2:
		return usagef("there is no command after --")
	case given("slots") && f.slots < 1:
		return usagef("--slots %d: want 1 or more", f.slots)
	case given("wait") && f.wait < 0:
		return usagef("--wait %v is negative", f.wait)
	case f.busyStatus < 0 || f.busyStatus > 255:
		return usagef("--busy-status %d: want 0 to 255", f.busyStatus)
	case given("grace") && f.grace <= 0:
		return usagef("--grace %v is not positive", f.grace)
	case len(f.label) > 256 || clean(f.label) != f.label: // the rule of queue.WithLabel
		return usagef("--label: want at most 256 bytes of printable characters")
	case given("max-tries") && (f.once == "" || f.tries < 1):
		return usagef("--max-tries %d: want 1 or more, and --once", f.tries)
	}
	if f.once != "" {
		if f.tick, f.period, err = tickOf(f.once, time.Now()); err != nil {
			return err
		}
	}
	// queue.New does no I/O, and does not look at the manager.
	if _, err := queue.New(new(session.Manager), args[0]); err != nil {
		return usagef("%v", errors.Unwrap(err)) // without the name of the package
	}
	return nil
}

var errNoGuard = errors.New("the guard of the command was killed while turnstile waited")

func (a *App) run(ctx context.Context, f runFlags, args []string) error {
	path, command := args[0], args[1:]
	program, err := find(command[0])
	if err == nil {
		err = supervise.Adopt()
	}
	if err != nil {
		return cannotStart(err)
	}
	signals, stop := supervise.Catch()
	defer stop()
	guard, err := supervise.StartGuard(os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		return cannotStart(err)
	}
	defer guard.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { <-guard.Ended; cancel(errNoGuard) }()

	// The time of --wait is for all that comes before the command.
	limited, end := context.WithCancel(ctx)
	switch {
	case f.wait > 0:
		limited, end = context.WithTimeout(ctx, f.wait)
	case f.wait == 0:
		limited, end = context.WithTimeout(ctx, 2*a.connection.Connect)
	}
	defer end()
	m, err := a.connectFor(limited, path)
	if m != nil {
		defer a.close(m)
	}
	var s *session.Session
	if err == nil {
		s, err = m.Session(limited)
	}
	if err != nil {
		return a.notAcquired(ctx, m, f, path, err)
	}
	if _, err := supervise.NewLimits(f.grace, s.Timeout()); err != nil {
		return usagef("--grace: %w", err)
	}
	dir := path
	if f.once != "" {
		dir += "/lock"
	}
	defer a.note(guard, m, s, dir)()
	work := func(lease *queue.Lease) error {
		token, s, err := tokenAndSession(ctx, m, lease)
		if err != nil {
			return err
		}
		result, err := supervise.Run(guard, runLock{lease, s}, signals, supervise.Options{
			Path: program, Args: command, Env: commandEnv(dir, token, f.tick), Grace: f.grace, Asked: lease.Revoked(), Log: a.log,
		})
		return outcome(dir, result, err)
	}
	if f.label != "" {
		limited = queue.WithLabel(limited, f.label)
	}
	if f.once != "" {
		return a.runOnce(ctx, limited, m, f, path, work)
	}
	lease, err := acquire(limited, m, path, f)
	if err != nil {
		return a.notAcquired(ctx, m, f, path, err)
	}
	return work(lease) // the end of the session releases the lock
}

// acquire takes the lock that the flags ask for.
func acquire(ctx context.Context, m *session.Manager, path string, f runFlags) (*queue.Lease, error) {
	var lock interface {
		Acquire(context.Context) (*queue.Lease, error)
		TryAcquire(context.Context) (*queue.Lease, error)
	}
	var err error
	if f.slots > 0 {
		lock, err = semaphore.New(m, path, f.slots)
	} else if f.read || f.write {
		var rw *rwlock.RWMutex
		if rw, err = rwlock.New(m, path); f.read && err == nil {
			lock = rw.Reader()
		} else {
			lock = rw
		}
	} else {
		lock, err = zklock.New(m, path)
	}
	switch {
	case err != nil:
		return nil, err
	case f.wait == 0:
		return lock.TryAcquire(ctx)
	}
	return lock.Acquire(ctx)
}

// notAcquired gives the error of an acquisition its exit status. ctx is without the bound of --wait.
func (a *App) notAcquired(ctx context.Context, m *session.Manager, f runFlags, path string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*codeError)):
		return err
	case errors.Is(err, queue.ErrBusy):
		return a.busy(ctx, m, path, err)
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrInvalidACL):
		if f.slots > 0 || f.once != "" {
			return refused(path, toChange, err)
		}
		return refused(path, toLock, err)
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case m == nil || m.State() != session.Connected || f.wait == 0:
		return withCode(codeConnect, fmt.Errorf("no connection: %w", err))
	}
	return withCode(codeBusy, fmt.Errorf("not free within %v: %w", f.wait, err))
}

// busy is the error of a try. It names the holders, if they still hold the lock.
func (a *App) busy(ctx context.Context, m *session.Manager, path string, err error) error {
	limited, cancel := context.WithTimeout(ctx, a.connection.Connect)
	defer cancel()
	t := locks.NewTree(m)
	if l, readErr := t.Read(limited, path); readErr == nil && len(l.Holders()) > 0 {
		age := t.Now(limited, path).Ago(l.Holders()[0].Since)
		err = fmt.Errorf("%s is held by %s, in the queue for %s; %s", clean(path), holderText(l), age, waiting(l.Waiting(), ""))
	}
	return withCode(codeBusy, err)
}

// outcome returns the error of run for what became of the command.
func outcome(path string, result supervise.Result, err error) error {
	what := map[bool]string{true: "ended", false: "not started"}[result.Started]
	switch {
	case errors.Is(err, supervise.ErrStart):
		return cannotStart(err)
	case err != nil:
		return err
	case errors.Is(result.Lost, supervise.ErrAsked):
		return withCode(codeLost, fmt.Errorf("%s: another client has asked for the lock, and the command was %s", path, what))
	case result.Lost != nil:
		return withCode(codeLost, fmt.Errorf("%s is lost, and the command was %s: %w", path, what, result.Lost))
	case result.Status != 0:
		return withCode(result.Status, nil)
	}
	return nil
}

// find returns the path of a command's program, as env, timeout and shells find it: an element of PATH that is empty or
// relative counts, and without the variable PATH the system's own directories do.
func find(name string) (string, error) {
	if _, known := os.LookupEnv("PATH"); !known {
		_ = os.Setenv("PATH", "/bin:/usr/bin")
		defer os.Unsetenv("PATH")
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}

// commandEnv returns the environment of the command. It has no variables of an outer run: of two that have the same name, some
// programs see the first. Nor has it WATCHDOG_PID, by which systemd says that turnstile is to tell that it is alive.
func commandEnv(path string, token int64, tick time.Time) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"TURNSTILE_PATH", "TURNSTILE_TOKEN", "TURNSTILE_TICK", "WATCHDOG_PID"}, name)
	})
	env = append(env, "TURNSTILE_PATH="+path, "TURNSTILE_TOKEN="+strconv.FormatInt(token, 10))
	if !tick.IsZero() {
		env = append(env, "TURNSTILE_TICK="+tick.Format(time.RFC3339Nano))
	}
	return env
}

// tokenAndSession returns the fencing token of a lease and its session. The manager has one live session at a time. So if the
// lease is still held after the manager has returned its session, that is the lease's.
func tokenAndSession(ctx context.Context, m *session.Manager, lease *queue.Lease) (int64, *session.Session, error) {
	ctx, cancel := lease.Context(ctx)
	defer cancel()
	token, err := lease.Token(ctx)
	if err != nil {
		return 0, nil, err
	}
	s, err := m.Session(ctx)
	if lost := lease.Err(); lost != nil {
		err = lost
	}
	return token, s, err
}

// runLock is a lease and its session. It implements supervise.Lock.
type runLock struct {
	lease   *queue.Lease
	session *session.Session
}

func (l runLock) Err() error            { return l.lease.Err() }
func (l runLock) Deleted() bool         { return l.session.Err() == nil }
func (l runLock) Done() <-chan struct{} { return l.lease.Done() }

func (l runLock) Remaining() (left, timeout time.Duration) {
	left = l.session.Remaining() // first: a server may grant a shorter timeout meanwhile, and the limits go by that
	return left, l.session.Timeout()
}
