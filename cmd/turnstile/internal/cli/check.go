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
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/session"
)

func checkCommand(a *App) *cobra.Command {
	var rounds int
	var observe time.Duration
	cmd := &cobra.Command{
		Use:   "check [PATH]",
		Short: "Find out whether the servers are good for locks",
		Long: `Find out whether the servers of --zk are good for locks. Check connects to each address of
each name, and tries at PATH what locks do. It takes about as long as a session timeout.

  VERSION, ROLE  by the word srvr, where the server allows it
  READ, WRITE    latency of one request after another: the median, and the slowest but
                 one in a hundred
  TIMEOUT        session timeout granted for the one asked for (--timeout)
  TICK           half of the shortest session timeout that the server grants. That is the
                 servers' tickTime, unless minSessionTimeout was set.
  REMAINING      how long an outage may last before a lock is lost: the least value of
                 Session.Remaining while nothing but heartbeats was sent. "turnstile run"
                 ends its command the grace period earlier.

It also finds jute.maxbuffer, the length of the longest request that a server takes, if that is
less than ZooKeeper's default of 1 MiB less one byte. For that it sends up to 24 handshakes
for a session that does not exist. Servers hang up on those that are too long, and note each
in their log.

Check makes nodes below PATH, or below the nearest directory above it that exists. Their
names begin with turnstile-check-. If there are identities (--auth), only these have rights
to them. They are deleted, and go with the session of check if that fails. It also tells
whether all servers are of one ensemble, by a node that was made on one of them.

The exit status is 0 if all is well, 1 if there are warnings, and 2 if no lock can be had.

With --json it prints one object:
  verdict     good, warnings or unusable
  problems, warnings  arrays of sentences
  servers     array of {server, address, error, version, role, read, write, timeoutMs,
              shortestTimeoutMs, remainingMs, runRemainingMs, clockAheadMs, sameEnsemble,
              maxRequestBytes, maxRequestError}. runRemainingMs is remainingMs without the default
              grace period of run. read and write are {rounds, medianMs, p99Ms}. error is why a
              server cannot be used. maxRequestBytes is at most 1048575, and maxRequestError
              is why it is not known.
  voters, observers  servers in the configuration of the ensemble
  unlisted    array of {server, error}: those of them that --zk does not name, if the
              configuration has their addresses for clients. error is why one cannot be used.
  following   how many voters follow the leader, if it answers the word mntr
  path, tried  where rights were to be tried, and where they were
  rights      {create, read, delete}, each yes, no or unknown
  containers, ttl  whether the servers know these kinds of nodes: yes, no or unknown`,
		Example: `  turnstile check
  turnstile check --zk zk1,zk2,zk3 --timeout 20s /prod/locks
  turnstile check --json | jq -r '.warnings[]'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(append(args, "/")[0])
			switch {
			case err != nil:
				return err
			case rounds < 1 || rounds > 10_000:
				return usagef("--rounds %d: want 1 to 10000", rounds)
			}
			return a.check(cmd.Context(), p, rounds, observe)
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 100, "how many reads and writes to measure on each server")
	cmd.Flags().DurationVar(&observe, "observe", -1, "how long to watch Session.Remaining; 0 is not at all (default six tenths of the session timeout)")
	cmd.Flags().Lookup("observe").DefValue = ""
	return cmd
}

func (a *App) check(ctx context.Context, p string, rounds int, observe time.Duration) error {
	opts, err := a.sessionOptions()
	if err != nil {
		return err
	}
	if identities, err := a.connection.identities(); err == nil && len(identities) > 0 {
		opts = append(opts, session.WithACL(zk.AuthACL(zk.PermAll)...))
	}
	connect := a.connection.connectString()
	if err := validServers(connect, opts); err != nil {
		return err
	}
	tls, err := a.connection.tls.config()
	if err != nil {
		return err
	}
	servers, chroot := ensemble.Split(connect)
	plan := ensemble.Plan{
		Servers: servers, Path: strings.TrimSuffix(chroot+p, "/"), Options: opts, TLS: tls,
		Timeout: a.connection.timeout, Connect: a.connection.connect, Rounds: rounds, Observe: observe,
	}
	if plan.Path == "" {
		plan.Path = "/"
	}
	r, err := ensemble.Examine(ctx, plan)
	if err != nil {
		return err
	}
	for i := range r.Servers {
		s := &r.Servers[i]
		s.Run = runRemaining(*s)
	}
	code := map[ensemble.Verdict]int{ensemble.Good: codeOK, ensemble.Warned: codeNo, ensemble.Unusable: codeUnusable}[r.Verdict]
	if a.JSON {
		err = a.printJSON(r)
	} else {
		a.printReport(r)
	}
	if err == nil && code != codeOK {
		err = withCode(code, nil)
	}
	return err
}

// validServers looks for errors of the connect string and the options, without any I/O.
func validServers(connect string, opts []session.Option) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	m, err := session.Connect(ended, connect, opts...)
	if err == nil {
		return m.Close()
	}
	if errors.Is(err, session.ErrInvalid) {
		return usageError(err)
	}
	return nil
}

func (a *App) printReport(r *ensemble.Report) {
	t := newTable("SERVER", "VERSION", "ROLE", "READ", "p99", "WRITE", "p99", "TIMEOUT", "TICK", "REMAINING")
	for _, s := range r.Servers {
		t.row(serverCells(s)...)
	}
	for _, line := range t.lines() {
		fmt.Fprintln(a.Out, line)
	}
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
		fmt.Fprintf(a.Out, "Containers: %s. TTL nodes: %s (locks do not need them)\n", r.Containers, r.TTL)
	}
	printLongest(a, r)
	if locks, run, ok := leastRemaining(r); ok {
		fmt.Fprintf(a.Out, "Outages: locks survive one of %.1fs, and commands of \"turnstile run\" one of %.1fs, as seen in %s\n",
			locks.Seconds(), run.Seconds(), span(r.Observed))
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

// printLongest says which requests all servers take, and where that is not known.
func printLongest(a *App, r *ensemble.Report) {
	least := 0
	for _, s := range r.Servers {
		if n := s.MaxRequest; n > 0 && (least == 0 || n < least) {
			least = n
		}
		if s.MaxRequestError != "" {
			fmt.Fprintf(a.Out, "Longest request: not known of %s: %s\n", clean(s.Name), clean(s.MaxRequestError))
		}
	}
	if least > 0 {
		fmt.Fprintf(a.Out, "Longest request: %d bytes are taken (jute.maxbuffer)\n", least)
	}
}

// leastRemaining returns the shortest outages that any server's sessions survive, and the commands of run with the default
// grace period.
func leastRemaining(r *ensemble.Report) (locks, run time.Duration, ok bool) {
	for _, s := range r.Servers {
		d := s.Remaining.Duration()
		if d <= 0 {
			continue
		}
		if !ok || d < locks {
			locks = d
		}
		if d := s.Run.Duration(); !ok || d < run {
			run = d
		}
		ok = true
	}
	return locks, run, ok
}

// runRemaining returns how long an outage may last before run ends its command, with the default grace period.
func runRemaining(s ensemble.Server) ensemble.Millis {
	limits, err := supervise.NewLimits(0, s.Granted.Duration())
	if err != nil {
		return 0
	}
	grace := ensemble.Millis(limits.Grace().Milliseconds())
	return max(0, s.Remaining-grace)
}

func serverCells(s ensemble.Server) []string {
	name := s.Name
	if s.Address != s.Name && s.Address != "" {
		name += " " + s.Address
	}
	cells := []string{clean(name), dash(clean(s.Version)), dash(clean(s.Role))}
	if !s.Usable() {
		return append(cells, "not usable")
	}
	cells = append(cells, latencyCells(s.Read)...)
	cells = append(cells, latencyCells(s.Write)...)
	tick := "?"
	if s.Shortest > 0 {
		tick = (s.Shortest.Duration() / 2).String()
	}
	remaining := "-"
	if s.Remaining > 0 {
		remaining = fmt.Sprintf("%.1fs", s.Remaining.Duration().Seconds())
	}
	return append(cells, s.Granted.Duration().String(), tick, remaining)
}

func latencyCells(l ensemble.Latency) []string {
	if l.Rounds == 0 {
		return []string{"-", "-"}
	}
	return []string{fmt.Sprintf("%.1fms", float64(l.Median)), fmt.Sprintf("%.1fms", float64(l.P99))}
}
