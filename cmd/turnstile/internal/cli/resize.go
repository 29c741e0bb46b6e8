package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
)

// resizeFlags are the flags of resize.
type resizeFlags struct{ create, limit, reset bool }

func resizeCommand(a *App) *cobra.Command {
	var f resizeFlags
	cmd := &cobra.Command{
		Use:   "resize PATH [LEASES]",
		Short: "Set how many leases a semaphore has, or show it (--limit)",
		Long: `Set the number of leases of the semaphore at PATH, for all programs at once. It stays
until the next resize, whatever number the programs were built with.

If there are fewer leases than before, no holder loses one: resize waits in the queue until
those that go are free, for as long as --timeout and --connect-timeout allow together, and
then leaves the limit as it was.

With --limit it only shows the limit, and how many leases are taken. With --reset it undoes
a resize: from then on the number in the programs counts again, which is LEASES.`,
		Example: `  turnstile resize /prod/pool 20
  turnstile resize --limit /prod/pool
  turnstile resize --reset /prod/pool 10`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			switch {
			case err != nil:
				return err
			case f.limit && (len(args) > 1 || f.create || f.reset):
				return usagef("--limit changes nothing: it goes with a path alone")
			case f.limit:
				return a.limit(cmd.Context(), p)
			case len(args) < 2:
				return usagef("how many leases? --limit shows how many there are")
			}
			n, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil || n < 1 {
				return usagef("%q is not a number of leases: want 1 to 2147483647", args[1])
			}
			return a.resize(cmd.Context(), p, int(n), f)
		},
	}
	cmd.Flags().BoolVar(&f.create, "create", false, "set the limit although the path does not exist")
	cmd.Flags().BoolVar(&f.limit, "limit", false, "only show the limit")
	cmd.Flags().BoolVar(&f.reset, "reset", false, "undo a resize: the programs' own limit counts, which is LEASES")
	return cmd
}

func (a *App) limit(ctx context.Context, p string) error {
	t, done, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer done()
	l, err := t.Read(ctx, p, locks.Holders)
	switch {
	case err != nil:
		return a.plain(clean(p), err)
	case l.Kind == locks.None:
		return fmt.Errorf("%s: no semaphore is in use here", clean(p))
	case l.Kind != locks.Semaphore && l.Kind != locks.Curator:
		return fmt.Errorf("%s is no semaphore, but a %s", clean(p), l.Kind.Text())
	case a.json:
		return a.printJSON(map[string]any{
			"path": p, "limit": l.Limit, "limitSet": l.LimitSet, "taken": l.Taken(), "holding": len(l.Holders()), "waiting": l.Waiting(),
		})
	}
	fmt.Fprintln(a.Out, a.summary(l))
	return nil
}

func (a *App) resize(ctx context.Context, p string, n int, f resizeFlags) error {
	opts, cfg, err := a.options()
	if err != nil {
		return err
	}
	if cfg != nil {
		opts = append(opts, session.WithTLS(cfg))
	}
	limited, cancel := context.WithTimeoutCause(ctx, a.connection.timeout+2*a.connection.connect, locks.ErrUnreachable)
	defer cancel()
	m, err := a.open(limited)
	if err != nil {
		return err
	}
	before, err := a.limitBefore(limited, locks.NewTree(m, a.connection.connect), p, f.create)
	_ = m.Close()
	if err != nil {
		return err
	}
	rights := runFlags{slots: n}
	m, err = a.connectFor(limited, opts, p, rights)
	if m != nil {
		defer func() { _ = m.Close() }()
	}
	if err != nil {
		return a.plain(clean(p), err)
	}
	s, err := semaphore.New(m, p, n)
	if err != nil {
		return usageError(err)
	}
	if f.reset {
		err = s.ResetLimit(limited)
	} else {
		err = s.Resize(limited, n)
	}
	var wait *queue.WaitError
	switch {
	case errors.As(err, &wait) && wait.Ahead.Path != "":
		return withCode(codeBusy, fmt.Errorf("the limit is still %d, since more leases are in use than there would be: %s. See: %s",
			before, wait.Reason, a.again("show", p)))
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return withCode(codeConnect, fmt.Errorf("no server confirms the limit: it may be set or not. See: %s", a.again("resize", "--limit", p)))
	case err != nil:
		return a.plain(clean(p), a.refused(p, rights.needs(), err))
	case a.json:
		return a.printJSON(map[string]any{"path": p, "before": before, "after": n})
	case before > 0:
		fmt.Fprintf(a.Out, "%s: the limit is %d, it was %d.\n", clean(p), n, before)
	default:
		fmt.Fprintf(a.Out, "%s: the limit is %d, no limit was on the servers before.\n", clean(p), n)
	}
	return nil
}

// limitBefore returns the limit on the servers, 0 if there is none. It refuses what is no semaphore.
func (a *App) limitBefore(ctx context.Context, t *locks.Tree, p string, create bool) (int, error) {
	l, err := t.Read(ctx, p, locks.Holders)
	switch {
	case errors.Is(err, zk.ErrNoNode) && create:
		return 0, nil
	case errors.Is(err, zk.ErrNoNode):
		return 0, withCode(codeNotFound, fmt.Errorf("%s does not exist. If the path is right, --create sets the limit for a semaphore that nobody has used yet", clean(p)))
	case err != nil:
		return 0, a.plain(clean(p), err)
	case l.Kind == locks.Curator:
		return 0, fmt.Errorf("%s is a semaphore in Curator's layout, which has no limit on the servers. Each program has its own", clean(p))
	case l.Kind == locks.Semaphore, l.Kind == locks.None && len(l.Others) == 0:
		return l.Limit, nil
	case l.Kind == locks.None:
		return 0, fmt.Errorf("%s is no semaphore: it is a directory with %s", clean(p), count(len(l.Others), "child", "children"))
	}
	return 0, fmt.Errorf("%s is no semaphore, but a %s", clean(p), l.Kind.Text())
}
