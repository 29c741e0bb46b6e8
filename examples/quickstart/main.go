// Quickstart has ten workers that want one lock. Each has a session of its own, as if it were
// another process, and prints a line when it gets the lock. The last line says whether the
// workers came in one by one, in the order of arrival. To see how the lock is used, read
// worker.
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
	work     = 50 * time.Millisecond // of each worker, under the lock
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	// Ctrl-C and SIGTERM cancel the context. Then the waiters leave the queue, the holder
	// stops its work and gives the lock back, and each worker closes its session.
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
	m, err := connect(ctx, servers) // once per process
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := zklock.New(m, lockPath)
	if err != nil {
		return err
	}
	asked := time.Now()
	return lock.Do(ctx, func(ctx context.Context) error { // ctx ends if the lock is lost
		waited := time.Since(asked)
		lease, _ := queue.LeaseFrom(ctx) // the lock that Do holds
		log.enter(lease)
		defer log.leave(lease)
		token, err := lease.Token(ctx)
		if err != nil {
			return err
		}
		log.order(lease, token)
		fmt.Fprintf(out, "worker %2d  waited %6s  fencing token %d\n", id, waited.Round(time.Millisecond), token)
		return pretendToWork(ctx)
	})
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}

func pretendToWork(ctx context.Context) error {
	select {
	case <-time.After(work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// record is the referee. It notes which workers are inside, and does not ask ZooKeeper.
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

// order checks that the holder's token is greater than all before it. Sequence numbers would
// not do: they start again when the queue has been empty for so long that the server has
// removed its directory.
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
