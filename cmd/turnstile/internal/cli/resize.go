package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
)

func resizeCommand(a *App) *cobra.Command {
	var show, reset bool
	cmd := &cobra.Command{
		Use:   "resize PATH [LEASES]",
		Short: "Set how many leases a semaphore has, or show it (--limit)",
		Long: `Set the number of leases of the semaphore at PATH, for all programs at once. It stays
until the next resize, whatever number the programs were built with.

No holder loses a lease: resize waits in the queue until those that go are free, for as long as
--timeout and --connect-timeout allow together, and then leaves the limit as it was.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(args[0], false)
			switch {
			case err != nil:
				return err
			case show && (len(args) > 1 || reset):
				return usagef("--limit changes nothing: it goes with a path alone")
			case show:
				return a.resize(cmd.Context(), p, 0, false)
			case len(args) < 2:
				return usagef("how many leases? --limit shows how many there are")
			}
			n, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil || n < 1 {
				return usagef("%q is not a number of leases: want 1 to 2147483647", args[1])
			}
			return a.resize(cmd.Context(), p, int(n), reset)
		},
	}
	cmd.Flags().BoolVar(&show, "limit", false, "only show the limit")
	cmd.Flags().BoolVar(&reset, "reset", false, "undo a resize: the programs' own limit counts, which is LEASES")
	return cmd
}

// resize sets the limit of a semaphore, or shows it if n is 0. It refuses what is no semaphore. A directory without
// contenders can become one.
func (a *App) resize(ctx context.Context, p string, n int, reset bool) error {
	limited, cancel := context.WithTimeoutCause(ctx, a.connection.Timeout+2*a.connection.Connect, locks.ErrUnreachable)
	defer cancel()
	m, err := a.connectFor(limited, p)
	if m != nil {
		defer m.Close()
	}
	if err != nil {
		return a.plain(clean(p), err)
	}
	l, err := locks.NewTree(m).Read(limited, p)
	switch {
	case err != nil:
		return a.plain(clean(p), err)
	case l.Kind == locks.None && len(l.Others) > 0:
		return fmt.Errorf("%s is no semaphore: it is a directory with %s", clean(p), count(len(l.Others), "child", "children"))
	case l.Kind != locks.Semaphore && l.Kind != locks.Curator && l.Kind != locks.None:
		return fmt.Errorf("%s is no semaphore, but a %s", clean(p), l.Kind)
	case n == 0 && l.Kind == locks.None:
		return fmt.Errorf("%s: no semaphore is in use here", clean(p))
	case n == 0:
		a.print("%s", a.summary(l))
		return nil
	case l.Kind == locks.Curator:
		return fmt.Errorf("%s is a semaphore in Curator's layout, which has no limit on the servers. Each program has its own", clean(p))
	}
	s, err := semaphore.New(m, p, n)
	if err != nil {
		return withCode(codeUsage, err)
	}
	if reset {
		err = s.ResetLimit(limited)
	} else {
		err = s.Resize(limited, n)
	}
	var wait *queue.WaitError
	switch {
	case errors.As(err, &wait) && wait.Ahead.Path != "":
		return withCode(codeBusy, fmt.Errorf("the limit is still %d, since more leases are in use than there would be: %s. See: %s",
			l.Limit, wait.Reason, a.again("show", p)))
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return withCode(codeConnect, fmt.Errorf("no server confirms the limit: it may be set or not. See: %s", a.again("resize", "--limit", p)))
	case err != nil:
		return a.plain(clean(p), refused(p, toChange, err))
	case l.Limit > 0:
		a.print("%s: the limit is %d, it was %d.", clean(p), n, l.Limit)
	default:
		a.print("%s: the limit is %d, no limit was on the servers before.", clean(p), n)
	}
	return nil
}
