package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// runFlags are the flags of run.
type runFlags struct {
	read, write bool
	slots       int
	wait        time.Duration // negative: without a bound; 0: a try
	try, quiet  bool
	busyStatus  int
	grace       time.Duration // 0: the default
	label       string
	descendants bool
	acl         string
	onRevoke    string
	once        string
	tries       int // 0: without a bound

	list   []zk.ACL       // of --acl; nil: it is inherited
	revoke syscall.Signal // of --on-revoke, for the command; 0: it is ended
	ignore bool           // --on-revoke ignore
	tick   time.Time      // of --once
	period time.Duration  // of --once with a duration, and a day for a date; 0: not known
}

func runCommand(a *App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PATH -- COMMAND [ARGUMENT...]",
		Short: "Hold a lock while a command runs",
		Long: `Run waits for the lock at PATH, runs a command, and releases the lock when the
command has ended. The exit status is the command's: see "turnstile help exit-codes".

The lock is a mutex, unless --read, --write or --slots says otherwise. All users of
a path must use the same kind of lock, and for --slots the same limit.

If the lock's lease is running out because no server answers, or turnstile itself is
stopped or killed, the command and all of its descendants are ended before another client
can hold the lock. Processes that the command leaves are ended before the release. With
--wait-descendants the lock stays held until they have ended by themselves.

Others ask for the lock with "turnstile break". By default the command is ended then.
--on-revoke TERM, or another signal, leaves it to the command what that means.

With --once many machines have the same line in their crontabs, and one of them runs the
command. TICK names the run that is due: "today" or a date for once a day, in local time; a
duration that divides the day, such as 1h, to which this machine's clock is truncated in
UTC; or an RFC 3339 time. PATH/lock is the lock then, and PATH/last the record.

The command's environment has TURNSTILE_PATH, TURNSTILE_TICK with --once, and
TURNSTILE_TOKEN, the fencing token: a number that is higher than that of every holder
before. A store can refuse a lower token than it has seen.`,
		Example: `  turnstile run --wait 10m /jobs/backup -- ./backup.sh
  turnstile run --wait 0 --quiet --busy-status 0 /jobs/backup -- ./backup.sh
  turnstile run --slots 4 /jobs/export -- ./export.sh
  turnstile run --read /data/catalog -- ./report.sh
  turnstile run --once today --wait 6h /jobs/report -- ./report.sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkRun(&f, cmd, args); err != nil {
				return err
			}
			err := a.run(cmd.Context(), f, args)
			var coded *codeError
			if errors.As(err, &coded) && coded.code == codeBusy {
				if coded = (&codeError{f.busyStatus, coded}); f.quiet {
					coded.err = nil
				}
				return coded
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
	flags.BoolVar(&f.try, "try", false, "do not wait for the lock: --wait 0")
	flags.IntVar(&f.busyStatus, "busy-status", codeBusy, "exit `status` if another client holds the lock")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing if another client holds the lock")
	flags.DurationVar(&f.grace, "grace", 0, "time for the command to end before the lease does, a 20th to a quarter of the session timeout (default: a fifth)")
	flags.BoolVar(&f.descendants, "wait-descendants", false, "hold the lock until the command's descendants have ended too")
	flags.StringVar(&f.label, "label", "", "what the lock is held for, for others to see")
	flags.StringVar(&f.onRevoke, "on-revoke", "terminate", "when others ask for the lock: terminate, ignore, or a `signal` for the command")
	flags.StringVar(&f.once, "once", "", "run once for this `tick`: today, a date, 1h, or an RFC 3339 time")
	flags.IntVar(&f.tries, "max-tries", 0, "with --once, begin a tick `n` times at most; 1: at most once")
	flags.StringVar(&f.acl, "acl", "inherit", "access control `list` of nodes that are made: inherit, open or creator")
	return cmd
}

// checkRun looks for errors before any I/O, and completes the flags.
func (a *App) checkRun(f *runFlags, cmd *cobra.Command, args []string) (err error) {
	given := cmd.Flags().Changed
	kinds := 0
	for _, set := range []bool{f.read, f.write, given("slots")} {
		if set {
			kinds++
		}
	}
	switch {
	case cmd.ArgsLenAtDash() != 1:
		return usagef("want one path, then --, then a command: turnstile run PATH -- COMMAND")
	case len(args) < 2:
		return usagef("there is no command after --")
	case kinds > 1:
		return usagef("--read, --write and --slots exclude each other")
	case given("slots") && f.slots < 1:
		return usagef("--slots %d: want 1 or more", f.slots)
	case given("wait") && f.try:
		return usagef("--wait and --try exclude each other")
	case given("wait") && f.wait < 0:
		return usagef("--wait %v is negative", f.wait)
	case f.busyStatus < 0 || f.busyStatus > 255:
		return usagef("--busy-status %d: want 0 to 255", f.busyStatus)
	case given("grace") && f.grace <= 0:
		return usagef("--grace %v is not positive", f.grace)
	case len(f.label) > 256 || clean(f.label) != f.label: // the rule of queue.WithLabel
		return usagef("--label: want at most 256 bytes of printable characters")
	case given("max-tries") && f.once == "":
		return usagef("--max-tries needs --once")
	case given("max-tries") && f.tries < 1:
		return usagef("--max-tries %d: want 1 or more", f.tries)
	case f.once != "" && kinds > 0:
		return usagef("--once excludes --read, --write and --slots")
	}
	if f.try {
		f.wait = 0
	}
	f.ignore = f.onRevoke == "ignore"
	if !f.ignore && f.onRevoke != "terminate" {
		var ok bool
		if f.revoke, ok = supervise.SignalOf(f.onRevoke); !ok {
			return usagef("--on-revoke %q: want terminate, ignore, or one of the signals INT, TERM, HUP, QUIT, USR1 and USR2", f.onRevoke)
		}
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
	f.list, err = a.aclOf(f.acl)
	return err
}

// needs returns the rights that the lock needs in its directory. The first contender of a semaphore writes its limit there, and
// the record of a job is written, with the same list.
func (f *runFlags) needs() int32 {
	needs := int32(zk.PermRead | zk.PermCreate | zk.PermDelete)
	if f.slots > 0 || f.once != "" {
		needs |= zk.PermWrite
	}
	return needs
}

var errNoGuard = errors.New("the guard of the command was killed while turnstile waited")

// run is the whole command.
func (a *App) run(ctx context.Context, f runFlags, args []string) error {
	if err := supervise.Supported(); err != nil {
		return err
	}
	path, command := args[0], args[1:]
	searched, known := os.LookupEnv("PATH")
	program, err := supervise.Find(command[0], searched, known)
	if err != nil {
		return cannotStart(err)
	}
	a.Err = newLaterWriter(a.Err)
	a.log = a.logger()
	signals := supervise.Catch()
	defer signals.Stop()
	guard, err := supervise.StartGuard(os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		return noRoom(err)
	}
	defer guard.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	waiting := make(chan struct{}) // closed when supervise.Run looks after the guard
	stopWaiting := sync.OnceFunc(func() { close(waiting) })
	defer stopWaiting()
	go func() {
		select {
		case <-guard.Ended():
			cancel(errNoGuard)
		case <-waiting:
		}
	}()

	// The time of --wait is for all that comes before the command.
	limited, end := ctx, context.CancelFunc(func() {})
	switch {
	case f.wait > 0:
		limited, end = context.WithTimeout(ctx, f.wait)
	case f.wait == 0:
		limited, end = context.WithTimeout(ctx, 2*a.connection.connect)
	}
	defer end()
	opts, err := a.guarded(guard)
	if err != nil {
		return err
	}
	m, err := a.connectFor(limited, opts, path, f.list)
	if m != nil {
		defer a.close(m)
	}
	if err != nil {
		return a.notAcquired(ctx, m, f, path, err)
	}
	s, err := m.Session(limited)
	if err != nil {
		return a.notAcquired(ctx, m, f, path, err)
	}
	limits, err := supervise.NewLimits(f.grace, s.Timeout())
	if err != nil {
		return usagef("--grace: %w", err)
	}
	work := func(lease *queue.Lease) error {
		l, err := newRunLock(ctx, m, lease)
		if err != nil {
			return err
		}
		defer l.stop()
		token, limits, err := l.ready(ctx, f.grace, limits)
		if err != nil {
			return err
		}
		stopWaiting()
		o := supervise.Options{Limits: limits, WaitDescendants: f.descendants, Log: a.log, AskedSignal: f.revoke}
		if !f.ignore {
			o.Asked = lease.Revoked()
		}
		c := supervise.Command{Path: program, Args: command, Env: commandEnv(os.Environ(), l.path(), token, f.tick)}
		result, err := supervise.Run(guard, c, l, signals, o)
		a.interrupted = result.Interrupted
		return outcome(l.path(), result, err)
	}
	if f.label != "" {
		limited = queue.WithLabel(limited, f.label)
	}
	if f.once != "" {
		return a.runOnce(ctx, limited, m, f, path, work)
	}
	lock, err := lockAt(m, path, f)
	if err != nil {
		return err
	}
	acquire := lock.Acquire
	if f.wait == 0 {
		acquire = lock.TryAcquire
	}
	lease, err := acquire(limited)
	if err != nil {
		return a.notAcquired(ctx, m, f, path, err)
	}
	defer a.release(ctx, lease)
	return work(lease)
}

// lockAt returns the lock that the flags of run ask for.
func lockAt(m *session.Manager, path string, f runFlags) (interface {
	Acquire(context.Context) (*queue.Lease, error)
	TryAcquire(context.Context) (*queue.Lease, error)
}, error,
) {
	switch {
	case f.slots > 0:
		return semaphore.New(m, path, f.slots)
	case f.write:
		return rwlock.New(m, path)
	case f.read:
		rw, err := rwlock.New(m, path)
		if err != nil {
			return nil, err
		}
		return rw.Reader(), nil
	}
	return zklock.New(m, path)
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
		return a.refused(path, f.needs(), err)
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case m == nil || m.State() != session.Connected || f.wait == 0:
		return withCode(codeConnect, fmt.Errorf("no connection: %w", err))
	}
	return withCode(codeBusy, fmt.Errorf("not free within %v: %w", f.wait, err))
}

// busy is the error of a try. It names the holders, if they still hold the lock.
func (a *App) busy(ctx context.Context, m *session.Manager, path string, err error) error {
	limited, cancel := context.WithTimeout(ctx, a.connection.connect)
	defer cancel()
	t := locks.NewTree(m, a.connection.connect)
	l, readErr := t.Read(limited, path, locks.Holders)
	if readErr != nil || len(l.Holders()) == 0 {
		return withCode(codeBusy, err)
	}
	now := t.Now(limited, path)
	var names []string
	const most = 3
	for i, c := range l.Holders() {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(l.Holders())-i))
			break
		}
		names = append(names, fmt.Sprintf("%s, in the queue for %s", whoCell(c), now.Ago(c.Since)))
	}
	return withCode(codeBusy, fmt.Errorf("%s is held by %s; %s", clean(path), strings.Join(names, "; "), waiting(l.Waiting(), "")))
}

// outcome returns the error of run for what became of the command.
func outcome(path string, result supervise.Result, err error) error {
	what := "the command was ended"
	if !result.Started {
		what = "the command was not started"
	}
	switch {
	case errors.Is(err, supervise.ErrStart):
		return cannotStart(err)
	case err != nil:
		return err
	case errors.Is(result.Lost, supervise.ErrAsked):
		return withCode(codeLost, fmt.Errorf("%s: another client has asked for the lock, and %s", path, what))
	case result.Lost != nil:
		return withCode(codeLost, fmt.Errorf("%s is lost, and %s: %w", path, what, result.Lost))
	case result.Status != 0:
		return withCode(result.Status, nil)
	}
	return nil
}

// commandEnv returns the environment of the command. It has no variables of an outer run: of two that have the same name, some
// programs see the first. Nor has it WATCHDOG_PID, by which systemd says that turnstile is to tell that it is alive.
func commandEnv(env []string, path string, token int64, tick time.Time) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"TURNSTILE_PATH", "TURNSTILE_TOKEN", "TURNSTILE_TICK", "WATCHDOG_PID"}, name)
	})
	env = append(env, "TURNSTILE_PATH="+path, "TURNSTILE_TOKEN="+strconv.FormatInt(token, 10))
	if !tick.IsZero() {
		env = append(env, "TURNSTILE_TICK="+tick.Format(time.RFC3339Nano))
	}
	return env
}

// ready returns the fencing token once the lock is certain for long enough to start a command. The
// heartbeats of a session see to that soon after its first lock, unless the servers answer too slowly.
//
// It also returns the limits for the lock's session. That can have a shorter timeout than the session
// which the first limits were made for, or be that session, with less granted since.
func (l *runLock) ready(ctx context.Context, grace time.Duration, first supervise.Limits) (int64, supervise.Limits, error) {
	ctx, cancel := l.lease.Context(ctx)
	defer cancel()
	token, err := l.lease.Token(ctx)
	if err != nil {
		return 0, first, err
	}
	tooSlow := time.After(l.session.Timeout())
	for {
		left, timeout := l.Remaining()
		limits, err := supervise.NewLimits(grace, timeout)
		switch {
		case err != nil:
			return 0, first, fmt.Errorf("the session timeout has changed to %v, and --grace does not fit it: %w", timeout, err)
		case left > limits.Start():
			return token, limits, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-tooSlow:
			return 0, first, fmt.Errorf("the servers answer so slowly that the command would be ended at once: with a grace period of %v the lock has to be certain for %v, and it is for %v",
				limits.Grace(), limits.Start(), left)
		case <-ctx.Done():
			if err := l.Err(); err != nil {
				return 0, first, err
			}
			return 0, first, context.Cause(ctx)
		}
	}
}

// release gives the lock up, with whatever became of ctx. Closing the manager takes 5 seconds more at most.
func (a *App) release(ctx context.Context, l *queue.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := l.Release(ctx)
	if err != nil && !errors.Is(err, session.ErrLost) && !errors.Is(err, queue.ErrReleasePending) {
		a.log.Warn("releasing the lock", "err", err)
	}
}

// close closes a manager. That releases all of its locks.
func (a *App) close(m *session.Manager) {
	if err := m.Close(); err != nil {
		a.log.Warn("the servers have not confirmed the end of the session, and release its locks when it times out", "err", err)
	}
}

// runLock is a lease and its session. It implements supervise.Lock.
type runLock struct {
	lease   *queue.Lease
	session *session.Session
	changed chan struct{}
	stop    func() // ends changed
}

// newRunLock finds the session of a lease. The manager has one live session at a time. So if the
// lease is still held after the manager has returned its session, that is the lease's.
func newRunLock(ctx context.Context, m *session.Manager, lease *queue.Lease) (*runLock, error) {
	ctx, cancel := lease.Context(ctx)
	defer cancel()
	s, err := m.Session(ctx)
	if lost := lease.Err(); lost != nil {
		return nil, lost
	}
	l := &runLock{lease: lease, session: s, changed: make(chan struct{}, 1)}
	l.stop = m.Subscribe(func(session.Change) {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	})
	return l, err
}

// path returns the path of the lock.
func (l *runLock) path() string {
	node := l.lease.Path()
	return node[:strings.LastIndexByte(node, '/')]
}

func (l *runLock) Err() error               { return l.lease.Err() }
func (l *runLock) Deleted() bool            { return l.session.Err() == nil }
func (l *runLock) Done() <-chan struct{}    { return l.lease.Done() }
func (l *runLock) Changed() <-chan struct{} { return l.changed }

func (l *runLock) Remaining() (left, timeout time.Duration) {
	timeout = l.session.Timeout()
	for {
		left = l.session.Remaining()
		now := l.session.Timeout()
		if now == timeout {
			return left, timeout
		}
		timeout = now // a server grants another one, by which left may have been computed
	}
}
