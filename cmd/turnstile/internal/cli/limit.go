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

func resizeCommand(a *App) *cobra.Command {
	var create, limit, reset bool
	var acl string
	cmd := &cobra.Command{
		Use:   "resize PATH [LEASES]",
		Short: "Set how many leases a semaphore has, or show it (--limit)",
		Long: `Set the number of leases of the semaphore at PATH, for all programs at once. It stays
until the next resize, whatever number the programs were built with.

Waiters that now fit are let in. If there are fewer leases than before, no holder loses
one: resize waits in the queue until those that go are free, for as long as --timeout and
--connect-timeout allow together, and then leaves the limit as it was.

With --limit it only shows the limit, and how many leases are taken. With --reset it undoes
a resize: from then on the number in the programs counts again, and all of them must be
built with the same one, which is LEASES.

A path that does not exist is refused, since it is often misspelt: --create sets the limit of
a semaphore that nobody has used yet. Semaphores in Curator's layout have no limit on the
servers, so it cannot be changed there. Programs with kazoo only compare it with their own.

` + aclHelp + `

With --json it prints {path, before, after}. before is 0 if no limit was on the servers. With
--limit it prints {path, limit, limitSet, taken, holding, waiting}. limit is 0 if the servers do
not know it. limitSet is true if an operator has set it.`,
		Example: `  turnstile resize /prod/pool 20
  turnstile resize --limit /prod/pool
  turnstile resize --reset /prod/pool 10`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := lockArg(args[0])
			switch {
			case err != nil:
				return err
			case limit && (len(args) > 1 || create || reset):
				return usagef("--limit changes nothing: it goes with a path alone")
			case limit:
				return a.limit(cmd.Context(), p)
			case len(args) < 2:
				return usagef("how many leases? --limit shows how many there are")
			}
			n, err := leasesArg(args[1])
			if err != nil {
				return err
			}
			if reset {
				undo := func(s *semaphore.Semaphore, ctx context.Context, _ int) error { return s.ResetLimit(ctx) }
				return a.resize(cmd.Context(), p, n, change{false, aclChoice{inherit: true}, rightsOfReset, undo})
			}
			c, err := a.aclOf(acl, rightsOfResize)
			if err != nil {
				return err
			}
			return a.resize(cmd.Context(), p, n, change{create, c, rightsOfResize, (*semaphore.Semaphore).Resize})
		},
	}
	cmd.Flags().BoolVar(&create, "create", false, "set the limit although the path does not exist")
	cmd.Flags().BoolVar(&limit, "limit", false, "only show the limit")
	cmd.Flags().BoolVar(&reset, "reset", false, "undo a resize: the limit is the programs' own again, which is LEASES")
	aclFlag(cmd.Flags(), &acl)
	return cmd
}

// leasesArg parses a number of leases.
func leasesArg(arg string) (int, error) {
	n, err := strconv.ParseInt(arg, 10, 32)
	if err != nil || n < 1 {
		return 0, usagef("%q is not a number of leases: want 1 to 2147483647", arg)
	}
	return int(n), nil
}

// limitJSON is the output of "resize --limit --json".
type limitJSON struct {
	Path     string `json:"path"`
	Limit    int    `json:"limit"`
	LimitSet bool   `json:"limitSet"`
	Taken    int    `json:"taken"`
	Holding  int    `json:"holding"`
	Waiting  int    `json:"waiting"`
}

func (a *App) limit(ctx context.Context, p string) error {
	t, done, err := a.tree(ctx)
	if err != nil {
		return err
	}
	defer done()
	l, err := a.readSemaphore(ctx, t, p)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(limitJSON{l.Path, l.Limit, l.LimitSet, l.Taken(), len(l.Holders()), l.Waiting()})
	}
	fmt.Fprintln(a.Out, summary(l))
	return nil
}

// readSemaphore reads a semaphore. Other locks are an error.
func (a *App) readSemaphore(ctx context.Context, t *locks.Tree, p string) (*locks.Lock, error) {
	l, err := t.Read(ctx, p, locks.Holders)
	if err != nil {
		return nil, a.plain(clean(p), err)
	}
	switch {
	case hasLeases(l.Kind):
		return l, nil
	case l.Kind == locks.None:
		return nil, fmt.Errorf("%s: no semaphore is in use here", clean(p))
	}
	return nil, fmt.Errorf("%s is no semaphore, but a %s", clean(p), kindText(l.Kind))
}

// resizeJSON is the output of "resize --json" and "resize --reset --json".
type resizeJSON struct {
	Path   string `json:"path"`
	Before int    `json:"before"`
	After  int    `json:"after"`
}

// change is a change of a limit.
type change struct {
	create bool // also if the path does not exist
	acl    aclChoice
	needs  int32 // rights in the directory
	set    func(*semaphore.Semaphore, context.Context, int) error
}

func (a *App) resize(ctx context.Context, p string, n int, c change) error {
	m, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	before, err := a.limitBefore(ctx, m, p, c.create)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, a.connection.timeout+a.connection.connect, locks.ErrUnreachable)
	defer cancel()
	if m, err = a.useACL(limited, m, a.Connect, p, c.acl, c.needs); err != nil {
		return a.plain(clean(p), err)
	}
	s, err := semaphore.New(m, p, n)
	if err != nil {
		return usageError(err)
	}
	if err := c.set(s, limited, n); err != nil {
		var wait *queue.WaitError
		if errors.As(err, &wait) && wait.Ahead.Path != "" {
			err = withCode(codeBusy, fmt.Errorf("the limit is still %d, since more leases are in use than there would be: %s. See: %s",
				before, wait.Reason, a.again("show", p)))
		} else if ctx.Err() == nil && limited.Err() != nil {
			err = withCode(codeConnect, fmt.Errorf("no server confirms the limit: it may be set or not. See: %s", a.again("resize", "--limit", p)))
		}
		return a.plain(clean(p), a.refused(p, c.needs, err))
	}
	if a.JSON {
		return a.printJSON(resizeJSON{p, before, n})
	}
	was := "no limit was on the servers before"
	if before > 0 {
		was = fmt.Sprintf("it was %d", before)
	}
	fmt.Fprintf(a.Out, "%s: the limit is %d, %s.\n", clean(p), n, was)
	return nil
}

// limitBefore returns the limit on the servers, 0 if there is none. It refuses what is no semaphore.
func (a *App) limitBefore(ctx context.Context, m *session.Manager, p string, create bool) (int, error) {
	l, err := locks.NewTree(m, a.connection.connect).Read(ctx, p, locks.Holders)
	switch {
	case errors.Is(err, zk.ErrNoNode) && create:
		return 0, nil
	case errors.Is(err, zk.ErrNoNode):
		return 0, withCode(codeNotFound, fmt.Errorf("%s does not exist. If the path is right, --create sets the limit for a semaphore that nobody has used yet", clean(p)))
	case err != nil:
		return 0, a.plain(clean(p), err)
	}
	switch {
	case l.Kind == locks.Curator:
		return 0, fmt.Errorf("%s is a semaphore in Curator's layout, which has no limit on the servers. Each program has its own", clean(p))
	case l.Kind == locks.Kazoo:
		return 0, fmt.Errorf("%s is a semaphore of kazoo, whose programs only compare the limit on the servers with their own", clean(p))
	case l.Kind == locks.Semaphore, l.Kind == locks.None && len(l.Others) == 0:
		return l.Limit, nil
	case l.Kind == locks.None:
		return 0, fmt.Errorf("%s is no semaphore: it is a directory with %s", clean(p), count(len(l.Others), "child", "children"))
	}
	return 0, fmt.Errorf("%s is no semaphore, but a %s", clean(p), kindText(l.Kind))
}
