package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// runFlags are the flags of run.
type runFlags struct {
	read, write bool
	slots       int
	slotsGiven  bool
	wait        time.Duration
	waitGiven   bool
	try         bool
	grace       time.Duration
	graceGiven  bool
	label       string
	descendants bool
	acl         string
	onRevoke    string
	once        string
	tick        time.Time // of once
	tries       int
	triesGiven  bool
}

// needs returns the rights that the lock needs in its directory. The record of a job is written, with the same list.
func (f *runFlags) needs() int32 {
	if f.slotsGiven || f.once != "" {
		return rightsOfSemaphore
	}
	return rightsOfLock
}

func runCommand(a *App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PATH -- COMMAND [ARGUMENT...]",
		Short: "Hold a lock while a command runs",
		Long: `Run waits for the lock at PATH, runs a command, and releases the lock when the
command has ended. The exit status is the command's.

The lock is a mutex, unless --read, --write or --slots says otherwise. All users of
a path must use the same kind of lock, and for --slots the same limit.

The command leads a process group of its own. Turnstile passes on the signals
INT, TERM, HUP, QUIT, USR1, USR2, WINCH, CONT and TSTP to the whole group. If the lock's
lease is running out because no server answers, the command and all of its descendants
get SIGTERM when less than the grace period remains, and SIGKILL before another client
can hold the lock. The same happens if turnstile itself is stopped or killed. Processes
that the command leaves are ended before the lock is released, wherever they went. With
--wait-descendants the lock stays held until they have ended by themselves.

Others can ask for the lock with "turnstile break". --on-revoke says what happens then:
  terminate  The command and its descendants get SIGTERM, and SIGKILL when the grace
             period is over. The status is 123, whatever the command's own is.
  a signal   The command's group gets it, such as TERM or USR1, and the command decides
             what that means. The status is the command's.
  ignore     Nothing: break waits in vain.

` + onceHelp + `
` + aclHelp + `

The command's environment has TURNSTILE_PATH, the lock's path, and
TURNSTILE_TOKEN, its fencing token: a number that is higher than that of every holder
before. A store can refuse a lower token than it has seen, before the command reads
and in the transaction that writes.`,
		Example: `  # One backup at a time, on all machines. Wait for the lock.
  turnstile run /jobs/backup -- ./backup.sh

  # Give up at once, or after ten minutes, if another machine is at it.
  turnstile run --try /jobs/backup -- ./backup.sh
  turnstile run --wait 10m /jobs/backup -- ./backup.sh

  # At most four exports at a time.
  turnstile run --slots 4 /jobs/export -- ./export.sh

  # Any number of readers, or one writer.
  turnstile run --read /data/catalog -- ./report.sh
  turnstile run --write /data/catalog -- ./import.sh

  # Each machine has this in its crontab, and one of them makes the report.
  turnstile run --once 24h --wait 6h /jobs/report -- ./report.sh

  # Tell others what the lock is for, and leave the command 5s to end if the lock is lost.
  turnstile run --timeout 20s --grace 5s --label "release 42" /deploy -- ./deploy.sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			f.slotsGiven, f.waitGiven, f.graceGiven = flags.Changed("slots"), flags.Changed("wait"), flags.Changed("grace")
			f.triesGiven = flags.Changed("max-tries")
			return a.run(cmd.Context(), f, args, cmd.ArgsLenAtDash())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.read, "read", false, "hold a read lock: readers share it, a writer (--write) excludes them")
	flags.BoolVar(&f.write, "write", false, "hold the write lock of a read-write lock")
	flags.IntVar(&f.slots, "slots", 0, "hold one of `n` leases of a semaphore")
	flags.DurationVar(&f.wait, "wait", 0, "wait for the lock for this long at most (default: without a bound)")
	flags.BoolVar(&f.try, "try", false, "do not wait for the lock")
	flags.DurationVar(&f.grace, "grace", 0, "time for the command to end before the lease does, from a 20th to a quarter of the session timeout (default: a fifth)")
	flags.BoolVar(&f.descendants, "wait-descendants", false, "when the command has ended, hold the lock until its descendants have ended too (default: end them)")
	flags.StringVar(&f.label, "label", "", "what the lock is held for, for others to see")
	flags.StringVar(&f.onRevoke, "on-revoke", revokeTerminate, "what happens when others ask for the lock: terminate, ignore, or a `signal` for the command")
	flags.StringVar(&f.once, "once", "", "run the command once for this `tick` of a schedule, on one of many machines: an RFC 3339 time, or a duration to which this machine's clock is truncated")
	flags.IntVar(&f.tries, "max-tries", 0, "with --once, begin a tick `n` times at most; 1: at most once (default: until the command succeeds)")
	aclFlag(flags, &f.acl)
	return cmd
}

// check looks for errors before any I/O. dash is how many arguments precede "--".
func (f *runFlags) check(args []string, dash int) error {
	kinds := 0
	for _, set := range []bool{f.read, f.write, f.slotsGiven} {
		if set {
			kinds++
		}
	}
	switch {
	case dash != 1:
		return usagef("want one path, then --, then a command: turnstile run PATH -- COMMAND")
	case len(args) < 2:
		return usagef("there is no command after --")
	case kinds > 1:
		return usagef("--read, --write and --slots exclude each other")
	case f.slotsGiven && f.slots < 1:
		return usagef("--slots %d: want 1 or more", f.slots)
	case f.waitGiven && f.try:
		return usagef("--wait and --try exclude each other")
	case f.waitGiven && f.wait <= 0:
		return usagef("--wait %v is not positive; --try does not wait", f.wait)
	case f.graceGiven && f.grace <= 0:
		return usagef("--grace %v is not positive", f.grace)
	case !validLabel(f.label):
		return usagef("--label: want at most 256 bytes of printable characters")
	}
	if err := f.checkOnce(); err != nil {
		return err
	}
	return checkPath(args[0])
}

// checkPath checks the path of a lock without a connection. queue.New does no I/O, and does not look
// at the manager.
func checkPath(path string) error {
	if _, err := queue.New(new(session.Manager), path); err != nil {
		return usagef("%v", errors.Unwrap(err)) // without the name of the package
	}
	return nil
}

// validLabel is the rule of queue.WithLabel.
func validLabel(label string) bool {
	for _, r := range label {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return len(label) <= 256 && utf8.ValidString(label)
}

// run is the whole command.
func (a *App) run(ctx context.Context, f runFlags, args []string, dash int) (err error) {
	if err := f.check(args, dash); err != nil {
		return err
	}
	acl, err := a.aclOf(f.acl, f.needs())
	if err != nil {
		return err
	}
	revoke, err := revocationOf(f.onRevoke)
	if err != nil {
		return err
	}
	if err := supervise.Supported(); err != nil {
		return err
	}
	program, err := find(args[1])
	if err != nil {
		return err
	}
	a.neverBlock()
	signals := supervise.Catch()
	defer signals.Stop()
	guard, err := supervise.StartGuard(supervise.Streams{In: a.In, Out: a.stdout, Err: a.Err})
	if err != nil {
		return err
	}
	defer guard.Close()
	connect, err := a.guarded(guard)
	if err != nil {
		return err
	}
	m, err := connect(ctx)
	if err != nil {
		return err
	}
	m, err = a.prepare(ctx, m, connect, f, args[0], acl)
	defer a.close(m)
	if err != nil {
		return err
	}
	limits, err := a.limits(ctx, m, f.grace)
	if err != nil {
		return err
	}
	work := func(l *runLock) error {
		token, limits, err := a.ready(ctx, l, f.grace, limits)
		if err != nil {
			return err
		}
		result, err := supervise.Run(guard, supervise.Command{
			Path: program, Args: args[1:], Env: commandEnv(os.Environ(), l.path(), token, f.tick),
		}, l, signals, supervise.Options{
			Limits: limits, Sole: a.sole, WaitDescendants: f.descendants, Log: a.Log,
			Asked: revoke.asked(l.lease), AskedSignal: revoke.signal,
		})
		a.interrupted = result.Interrupted
		return outcome(l.path(), result, err)
	}
	if f.once != "" {
		return a.runOnce(ctx, m, f, args[0], revoke, work)
	}
	l, err := a.acquire(ctx, m, f, args[0])
	if err != nil {
		return err
	}
	defer a.release(ctx, l)
	return work(l)
}

const askedBefore = "another client has asked for the lock, and the command was not started"

// outcome returns the error of run for what became of the command.
func outcome(path string, result supervise.Result, err error) error {
	switch {
	case errors.Is(err, supervise.ErrStart):
		return withCode(codeCannotRun, err)
	case err != nil:
		return err
	case errors.Is(result.Lost, supervise.ErrAsked) && !result.Started:
		return withCode(codeLost, fmt.Errorf("%s: %s", path, askedBefore))
	case errors.Is(result.Lost, supervise.ErrAsked):
		return withCode(codeLost, fmt.Errorf("%s: another client has asked for the lock, and the command was ended", path))
	case result.Lost != nil && !result.Started:
		return withCode(codeLost, fmt.Errorf("%s is lost, and the command was not started: %w", path, result.Lost))
	case result.Lost != nil:
		return withCode(codeLost, fmt.Errorf("%s is lost, and the command was ended: %w", path, result.Lost))
	case result.Status != 0:
		return withCode(result.Status, nil)
	}
	return nil
}

// commandEnv returns the environment of the command. It has no variables of an outer run: of two that have the same name, some
// programs see the first.
func commandEnv(env []string, path string, token int64, tick time.Time) []string {
	const pathVariable, tokenVariable, tickVariable = envPrefix + "PATH=", envPrefix + "TOKEN=", envPrefix + "TICK="
	env = slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, pathVariable) || strings.HasPrefix(v, tokenVariable) || strings.HasPrefix(v, tickVariable)
	})
	env = append(env, pathVariable+path, tokenVariable+strconv.FormatInt(token, 10))
	if !tick.IsZero() {
		env = append(env, tickVariable+tick.Format(time.RFC3339Nano))
	}
	return env
}

// find returns the path of the command's program, with the statuses that a shell gives.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", withCode(codeNoCommand, err)
	}
	return "", withCode(codeCannotRun, err)
}

// limits checks the grace period against the timeout that the servers have granted.
func (a *App) limits(ctx context.Context, m *session.Manager, grace time.Duration) (supervise.Limits, error) {
	s, err := m.Session(ctx)
	if err != nil {
		return supervise.Limits{}, err
	}
	limits, err := supervise.NewLimits(grace, s.Timeout())
	if err != nil {
		return limits, usagef("--grace: %w", err)
	}
	return limits, nil
}

// ready returns the fencing token once the lock is certain for long enough to start a command. The
// heartbeats of a session see to that soon after its first lock, unless the servers answer too slowly.
//
// It also returns the limits for the lock's session. That can have a shorter timeout than the session
// which the first limits were made for, or be that session, with less granted since.
func (a *App) ready(ctx context.Context, l *runLock, grace time.Duration, first supervise.Limits) (int64, supervise.Limits, error) {
	ctx, cancel := l.lease.Context(ctx)
	defer cancel()
	token, err := l.lease.Token(ctx)
	if err != nil {
		return 0, first, err
	}
	tooSlow := time.After(l.Timeout())
	for {
		limits, err := supervise.NewLimits(grace, l.Timeout())
		switch {
		case err != nil:
			return 0, first, fmt.Errorf("the session timeout has changed from %v to %v, and --grace does not fit it: %w", first.Timeout(), l.Timeout(), err)
		case l.Remaining() > limits.Start():
			return token, limits, nil
		}
		select {
		case <-time.After(readyPoll):
		case <-tooSlow:
			return 0, first, fmt.Errorf("the servers answer so slowly that the command would be ended at once: with a grace period of %v the lock has to be certain for %v, and it is for %v",
				limits.Grace(), limits.Start(), l.Remaining())
		case <-ctx.Done():
			if err := l.Err(); err != nil {
				return 0, first, err
			}
			return 0, first, ctx.Err()
		}
	}
}

const readyPoll = 10 * time.Millisecond

// releaseTime bounds how long run waits for the confirmation of a release. Closing the manager takes
// 5 seconds more at most.
const releaseTime = 2 * time.Second

// release gives the lock up, with whatever became of ctx.
func (a *App) release(ctx context.Context, l *runLock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	err := l.lease.Release(ctx)
	if err != nil && !errors.Is(err, session.ErrLost) && !errors.Is(err, queue.ErrReleasePending) {
		a.Log.Warn("releasing the lock", "err", err)
	}
}

// close closes a manager. That releases all of its locks.
func (a *App) close(m io.Closer) {
	if err := m.Close(); err != nil {
		a.Log.Warn("the servers have not confirmed the end of the session, and release its locks when it times out", "err", err)
	}
}
