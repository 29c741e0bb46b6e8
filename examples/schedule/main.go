// Schedule runs a job once at each tick, on one of three replicas, each with a session of its own as if it
// were another process. Each replica fires at each tick, at a time of its own. The third job takes longer
// than the time between two ticks: the ticks meanwhile are left out. See fire, which is the whole of the cron
// job.
//
//	go run ./examples/schedule                  # with a server in the process
//	go run ./examples/schedule -zk host:2181    # with a ZooKeeper of yours
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	replicas = 3
	ticks    = 8
	every    = 400 * time.Millisecond
	late     = 60 * time.Millisecond // one timer after the other
	jobPath  = "/schedule/report"
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "schedule:", err)
		os.Exit(1)
	}
}

// fire is what a replica does at a tick.
func fire(ctx context.Context, job *schedule.Job, tick time.Time, report func(context.Context) error) error {
	outcome, err := job.TryRun(ctx, tick, report)
	slog.Debug("report", "tick", tick, "outcome", outcome) // ran; done by another replica; or busy: one is at it
	return err
}

func run(ctx context.Context, out io.Writer, servers string) error {
	if servers == "" {
		server, err := zktest.New()
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.ConnectString()
	}
	b := &board{out: out, runs: make(map[time.Time]int)}
	first := time.Now().Truncate(every).Add(2 * every) // the same name in all replicas
	g, ctx := errgroup.WithContext(ctx)
	for id := range replicas {
		g.Go(func() error { return replica(ctx, servers, id, first, b) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return b.sum()
}

// replica fires at each tick, later than others or earlier.
func replica(ctx context.Context, servers string, id int, first time.Time, b *board) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	job, err := schedule.New(m, jobPath)
	if err != nil {
		return err
	}
	var jobs errgroup.Group
	defer jobs.Wait() // before the manager is closed
	for n := range ticks {
		tick := first.Add(time.Duration(n) * every)
		select {
		case <-time.After(time.Until(tick.Add(time.Duration((id+n)%replicas) * late))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		jobs.Go(func() error { // a timer does not wait for the job
			return fire(ctx, job, tick, func(ctx context.Context) error { return b.report(ctx, id, n, tick) })
		})
	}
	return jobs.Wait()
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}

// board notes which replica has run which tick.
type board struct {
	out io.Writer

	mu   sync.Mutex
	runs map[time.Time]int
}

// report is the job of tick n.
func (b *board) report(ctx context.Context, id, n int, tick time.Time) error {
	b.mu.Lock()
	b.runs[tick]++
	fmt.Fprintf(b.out, "%s: replica %d makes the report\n", tick.Format("15:04:05.0"), id+1)
	b.mu.Unlock()
	takes := every / 8
	if n == 2 {
		takes = 2*every + every/2
	}
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sum prints a summary. It is an error if a tick was run twice.
func (b *board) sum() error {
	twice := 0
	for _, runs := range b.runs {
		if runs > 1 {
			twice++
		}
	}
	fmt.Fprintf(b.out, "%d ticks, %d reports, %d ticks were left out, %d were reported twice\n",
		ticks, len(b.runs), ticks-len(b.runs), twice)
	if twice > 0 {
		return fmt.Errorf("%d ticks were run twice", twice)
	}
	return nil
}
