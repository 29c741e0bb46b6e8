package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/locks"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/session"
)

func checkCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "check [PATH]",
		Short: "Find out whether the servers are good for locks",
		Long: `Find out whether the servers of --zk are good for locks. Check connects to each address of
each name, and tries at PATH what locks do. It takes about as long as a session timeout.

  VERSION, ROLE  by the word srvr, where the server allows it
  READ, WRITE    latency of one request after another: the median, and the slowest but
                 one in a hundred
  TIMEOUT        session timeout granted for the one asked for (--timeout)
  TICK           half of the shortest session timeout that the server grants
  REMAINING      how long an outage may last before a lock is lost: the least seen while
                 nothing but heartbeats was sent. "turnstile run" ends its command the
                 grace period earlier.

Check makes nodes below PATH, or below the nearest directory above it that exists, and deletes
them. Their names begin with turnstile-check-. If there are identities (--auth), only these have
rights to them.

The exit status is 0 if all is well, 1 if there are warnings, and 2 if no lock can be had.`,
		Example: `  turnstile check --zk zk1,zk2,zk3 --timeout 20s /prod/locks
  turnstile check --json | jq -r '.warnings[]'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(append(args, "/")[0])
			if err != nil {
				return err
			}
			return a.check(cmd.Context(), p)
		},
	}
}

func (a *App) check(ctx context.Context, p string) error {
	opts, cfg, err := a.options()
	if err != nil {
		return err
	}
	if cfg != nil {
		opts = append(opts, session.WithTLS(cfg))
	}
	if identities, err := a.connection.identities(); err == nil && len(identities) > 0 {
		opts = append(opts, session.WithACL(zk.AuthACL(zk.PermAll)...))
	}
	// This finds errors of the connect string and the options, without any I/O.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := session.Connect(ended, a.connection.servers, opts...); errors.Is(err, session.ErrInvalid) {
		return usageError(err)
	}
	servers, chroot := ensemble.Split(a.connection.servers)
	r, err := ensemble.Examine(ctx, ensemble.Plan{
		Servers: servers, Path: "/" + strings.Trim(chroot+p, "/"), Options: opts, TLS: cfg,
		Timeout: a.connection.timeout, Connect: a.connection.connect,
	})
	if err != nil {
		return err
	}
	for i := range r.Servers {
		s := &r.Servers[i]
		if limits, err := supervise.NewLimits(0, s.Granted.Duration()); err == nil {
			s.Run = max(0, s.Remaining-ensemble.Millis(limits.Grace().Milliseconds()))
		}
	}
	if a.json {
		err = a.printJSON(r)
	} else {
		a.printReport(r)
	}
	code := map[ensemble.Verdict]int{ensemble.Good: codeOK, ensemble.Warned: codeNo, ensemble.Unusable: codeUnusable}[r.Verdict]
	if err == nil && code != codeOK {
		err = withCode(code, nil)
	}
	return err
}

func (a *App) printReport(r *ensemble.Report) {
	t := newTable("SERVER", "VERSION", "ROLE", "READ", "p99", "WRITE", "p99", "TIMEOUT", "TICK", "REMAINING")
	var least, run, watched time.Duration
	for _, s := range r.Servers {
		name := s.Name
		if s.Address != s.Name && s.Address != "" {
			name += " " + s.Address
		}
		cells := []string{clean(name), dash(clean(s.Version)), dash(clean(s.Role))}
		if !s.Usable() {
			t.row(append(cells, "not usable")...)
			continue
		}
		for _, l := range []ensemble.Latency{s.Read, s.Write} {
			if l.Rounds == 0 {
				cells = append(cells, "-", "-")
			} else {
				cells = append(cells, fmt.Sprintf("%.1fms", float64(l.Median)), fmt.Sprintf("%.1fms", float64(l.P99)))
			}
		}
		tick, remaining := "?", "-"
		if s.Shortest > 0 {
			tick = (s.Shortest.Duration() / 2).String()
		}
		if d := s.Remaining.Duration(); d > 0 {
			remaining = fmt.Sprintf("%.1fs", d.Seconds())
			if least == 0 || d < least {
				least, run, watched = d, s.Run.Duration(), s.Granted.Duration()*6/10
			}
		}
		t.row(append(cells, s.Granted.Duration().String(), tick, remaining)...)
	}
	t.print(a.Out, a.room())
	fmt.Fprintln(a.Out)
	if r.Voters > 0 {
		text := count(r.Voters, "server votes", "servers vote")
		if r.Observers > 0 {
			text += ", " + count(r.Observers, "observer", "observers")
		}
		fmt.Fprintf(a.Out, "Ensemble: %s\n", text)
	}
	if r.Tried != "" {
		fmt.Fprintf(a.Out, "Rights at %s: create %s, read %s, delete %s\n", clean(r.Tried), r.Rights.Create, r.Rights.Read, r.Rights.Delete)
	}
	if least > 0 {
		fmt.Fprintf(a.Out, "Outages: locks survive one of %.1fs, and commands of \"turnstile run\" one of %.1fs, as seen in %s\n",
			least.Seconds(), run.Seconds(), locks.Span(watched))
	}
	fmt.Fprintln(a.Out)
	for _, p := range r.Problems {
		fmt.Fprintf(a.Out, "PROBLEM: %s\n", clean(p))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(a.Out, "Warning: %s\n", clean(w))
	}
	fmt.Fprintln(a.Out, map[ensemble.Verdict]string{
		ensemble.Good:     "Good for locks.",
		ensemble.Warned:   "Good for locks, with warnings.",
		ensemble.Unusable: "Not good for locks.",
	}[r.Verdict])
}
