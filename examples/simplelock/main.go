// Simplelock is a lock of 40 lines, made with package session alone: one node with a fixed name, which the others watch.
// It is what the literature calls a simple lock with a herd. The program shows what the herd costs: how many requests the
// servers get when the lock changes hands once, by how many clients wait for it. Beside it is the queue of package
// zklock, in which each client watches only the nodes just ahead of it.
//
//	go run ./examples/simplelock                  # with a server in the process
//	go run ./examples/simplelock -zk host:2181    # with a ZooKeeper of yours
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
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	simpleDir  = "/simplelock/simple"
	queuePath  = "/simplelock/queue"
	mostWaiter = 32
	work       = 10 * time.Millisecond // of each client that holds a lock
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "simplelock:", err)
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
	var c crowd
	clients := make([]*session.Manager, mostWaiter+1)
	g, gctx := errgroup.WithContext(ctx)
	for i := range clients {
		g.Go(func() (err error) {
			clients[i], err = connect(gctx, servers, session.WithTrace(c.hooks()))
			return err
		})
	}
	err := g.Wait()
	for _, m := range clients {
		if m != nil {
			defer m.Close()
		}
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "requests for one hand-over")
	fmt.Fprintln(out, "waiters   simple lock   queue")
	for waiters := 1; waiters <= mostWaiter; waiters *= 2 {
		herd, err := c.measure(ctx, clients[:waiters+1], c.simple)
		if err != nil {
			return err
		}
		queue, err := c.measure(ctx, clients[:waiters+1], queued)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%7d   %11d   %5d\n", waiters, herd, queue)
	}
	return nil
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect waits until there is a
// server.
func connect(ctx context.Context, servers string, opts ...session.Option) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, append(opts, session.WithLogger(slog.New(slog.DiscardHandler)))...)
}

// locker is a lock as one client has it.
type locker interface {
	Lock(ctx context.Context) error
	Err() error // nil while it is held
	Unlock() error
}

func (c *crowd) simple(m *session.Manager) (locker, error) {
	return &simpleLock{m: m, dir: simpleDir, waits: c.waits}, nil
}

// queuedLock is a fair mutex.
type queuedLock struct{ *zklock.Mutex }

func queued(m *session.Manager) (locker, error) {
	lock, err := zklock.New(m, queuePath)
	return queuedLock{lock}, err
}

func (l queuedLock) Err() error {
	if !l.Held() {
		return session.ErrLost
	}
	return nil
}

// crowd is the clients of a lock, and what they send.
type crowd struct {
	mu       sync.Mutex
	requests int
	waiting  int
	left     int // clients that have not had the lock, and the holder
	holders  int
	over     bool          // two clients had the lock at once
	before   []int         // requests before each hand-over
	changed  chan struct{} // closed when waiting changes
}

// hooks count requests, and clients of a queue that wait.
func (c *crowd) hooks() session.Trace {
	return session.Trace{
		Request: func(ctx context.Context, _ session.RequestInfo) (context.Context, func(error)) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.requests++
			return ctx, nil
		},
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			c.waits(true)
			return ctx, func(error) { c.waits(false) }
		},
	}
}

func (c *crowd) waits(begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begins {
		c.waiting++
	} else {
		c.waiting--
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// measure has each client take the lock once. It returns the requests of the first hand-over: from the moment when all but
// the first holder wait, to the moment when all but the second one do.
func (c *crowd) measure(ctx context.Context, clients []*session.Manager, lock func(*session.Manager) (locker, error)) (int, error) {
	c.mu.Lock()
	c.waiting, c.left, c.before, c.changed = 0, len(clients), nil, make(chan struct{})
	c.mu.Unlock()
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range clients {
		g.Go(func() error {
			l, err := lock(m)
			if err != nil {
				return err
			}
			if err := l.Lock(ctx); err != nil {
				return err
			}
			return errors.Join(c.hold(ctx, l), l.Unlock())
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	if c.over {
		return 0, errors.New("two clients had the lock at once")
	}
	return c.before[1] - c.before[0], nil
}

// hold keeps the lock until all other clients wait for it, and some time longer.
func (c *crowd) hold(ctx context.Context, l locker) error {
	c.mu.Lock()
	c.holders++
	c.over = c.over || c.holders > 1
	for c.waiting != c.left-1 && ctx.Err() == nil {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	select {
	case <-time.After(work):
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = append(c.before, c.requests)
	c.holders--
	c.left--
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return l.Err()
}
