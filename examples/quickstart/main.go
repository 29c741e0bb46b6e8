// Quickstart: ten workers, each with a session of its own as if it were another process,
// want one lock. Each prints a line when it gets it; the last line says whether the
// order of arrival was kept and nobody overlapped.
//
//	go run ./examples/quickstart                  # with a server in the process
//	go run ./examples/quickstart -zk host:2181    # with a ZooKeeper of yours
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	workers  = 10
	lockPath = "/quickstart/lock"
	work     = 50 * time.Millisecond // what each does under the lock
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	// Ctrl-C cancels the context: whoever waits leaves the queue, whoever holds finishes,
	// and closing the sessions removes the rest.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
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
	var log record
	g, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		g.Go(func() error { return worker(ctx, out, servers, i+1, &log) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := log.verdict(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d workers in order of arrival, never two at once\n", workers)
	return nil
}

// worker takes the lock once, in a session of its own.
func worker(ctx context.Context, out io.Writer, servers string, id int, log *record) error {
	place := 0
	m, err := session.Connect(ctx, servers,
		session.WithLogger(slog.New(slog.DiscardHandler)),
		session.WithTrace(session.Trace{Acquire: func(ctx context.Context, _ session.AcquireInfo) (context.Context, func(session.AcquireResult)) {
			return ctx, func(r session.AcquireResult) { place = r.Position }
		}}))
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := zklock.New(m, lockPath)
	if err != nil {
		return err
	}
	asked := time.Now()
	lease, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	waited := time.Since(asked)
	log.enter(lease)
	token, err := lease.Token(ctx)
	if err == nil {
		log.order(lease, token)
		fmt.Fprintf(out, "worker %2d  ahead of it %d  waited %6s  fencing token %d\n",
			id, place, waited.Round(time.Millisecond), token)
		pretendToWork(ctx)
	}
	log.leave(lease)
	return errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

func pretendToWork(ctx context.Context) {
	select {
	case <-time.After(work):
	case <-ctx.Done():
	}
}

// record is the referee: it sees who is inside without asking ZooKeeper.
type record struct {
	mu      sync.Mutex
	inside  int
	last    int64 // fencing token of the last to enter
	entries int
	errs    []error
}

func (r *record) enter(l *queue.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside != 0 {
		r.errs = append(r.errs, fmt.Errorf("%s entered while %d were inside", path.Base(l.Path()), r.inside))
	}
	r.inside++
	r.entries++
}

// order is told the token of who is inside. Sequence numbers would not do: they begin again
// when the queue was empty for long enough that the server has removed its directory.
func (r *record) order(l *queue.Lease, token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token <= r.last {
		r.errs = append(r.errs, fmt.Errorf("%s entered with token %d, after %d", path.Base(l.Path()), token, r.last))
	}
	r.last = token
}

func (r *record) leave(l *queue.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := l.Err(); err != nil {
		r.errs = append(r.errs, err)
	}
	r.inside--
}

func (r *record) verdict() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries != workers {
		r.errs = append(r.errs, fmt.Errorf("%d of %d workers entered", r.entries, workers))
	}
	return errors.Join(r.errs...)
}
