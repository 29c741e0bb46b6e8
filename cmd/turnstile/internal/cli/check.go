package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/turnstile-go/turnstile/session"
)

func checkCommand(a *App) *cobra.Command {
	return onPath(&cobra.Command{
		Use:   "check [PATH]",
		Short: "Find out whether the servers are good for locks",
		Long: `Find out whether the servers of --zk are good for locks. Check connects to each address of
each name, and tries at PATH, or at the nearest directory above it, what locks do. VERSION and ROLE
need the word srvr, WRITE is the median latency of one write after another, and TIMEOUT the session
timeout that was granted for --timeout. The nodes that it makes are gone when it ends.

The exit status is 0 if all is well, 1 if there are warnings, and 2 if no lock can be had.`,
		Example: `  turnstile check --zk zk1,zk2,zk3 --timeout 20s /prod/locks`,
	}, true, a.check)
}

func (a *App) check(ctx context.Context, p string) error {
	opts, err := a.connection.options(a.log)
	if err != nil {
		return err
	}
	if identities, err := a.connection.identities(); err == nil && len(identities) > 0 {
		opts = append(opts, session.WithACL(zk.AuthACL(zk.PermAll)...))
	}
	// This finds errors of the connect string and the options, without any I/O.
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := session.Connect(ended, a.connection.Servers, opts...); errors.Is(err, session.ErrInvalid) {
		return withCode(codeUsage, err)
	}
	cfg, err := a.connection.tls()
	if err != nil {
		return err
	}
	r, err := ensemble.Examine(ctx, ensemble.Plan{
		Connect: a.connection.Servers, Path: p, Options: opts, TLS: cfg, Timeout: a.connection.Timeout, Within: a.connection.Connect,
	})
	if err != nil {
		return err
	}
	a.printReport(r)
	switch {
	case len(r.Problems) > 0:
		a.print("Not good for locks.")
		return withCode(codeUnusable, nil)
	case len(r.Warnings) > 0:
		a.print("Good for locks, with warnings.")
		return withCode(codeNo, nil)
	}
	a.print("Good for locks.")
	return nil
}

func (a *App) printReport(r *ensemble.Report) {
	t := newTable("SERVER", "VERSION", "ROLE", "WRITE", "p99", "TIMEOUT")
	for _, s := range r.Servers {
		cells := []string{clean(s.Name), cmp.Or(clean(s.Version), "-"), cmp.Or(clean(s.Role), "-")}
		if !s.Usable() {
			t.row(append(cells, "not usable")...)
			continue
		}
		for _, d := range []time.Duration{s.MedianWrite, s.P99} {
			if d == 0 {
				cells = append(cells, "-")
			} else {
				cells = append(cells, fmt.Sprintf("%.1fms", d.Seconds()*1000))
			}
		}
		t.row(append(cells, s.Granted.String())...)
	}
	t.print(a.Out, a.room())
	a.print("")
	if r.Voters > 0 {
		a.print("Ensemble: %s", count(r.Voters, "server votes", "servers vote"))
	}
	if r.Tried != "" && len(r.Refused) == 0 {
		a.print("Rights at %s: create, read, delete", clean(r.Tried))
	}
	a.print("")
	for _, p := range r.Problems {
		a.print("PROBLEM: %s", clean(p))
	}
	for _, w := range r.Warnings {
		a.print("Warning: %s", clean(w))
	}
}
