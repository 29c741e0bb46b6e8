// Pool lets ten workers into a pool of three places, each with a session of its own as if it
// were another process. Some workers need two places at once, and take both or none. When half
// of the workers are done, the pool gets five places. A line shows which workers are inside:
// one digit for each place.
//
//	go run ./examples/pool                  # with a server in the process
//	go run ./examples/pool -zk host:2181    # with a ZooKeeper of yours
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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	workers  = 10
	places   = 3 // until half of the workers are done
	more     = 5 // and then
	poolPath = "/pool/places"
	work     = 200 * time.Millisecond // of each worker, inside
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "pool:", err)
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
	p := pool{out: out, format: "%s\n", limit: places, half: make(chan struct{}), all: make(chan struct{})}
	if isTerminal(out) {
		p.format = "\r%s" // all lines are of one length
	}
	g, gctx := errgroup.WithContext(ctx)
	for id := range workers {
		g.Go(func() error { return worker(gctx, servers, id, &p) })
	}
	g.Go(func() error { return operator(gctx, servers, &p) })
	err := g.Wait()
	if isTerminal(out) {
		fmt.Fprintln(out)
	}
	if err != nil {
		return err
	}
	if p.over > 0 {
		return fmt.Errorf("%d places were taken at once, of %d", p.over, p.limit)
	}
	fmt.Fprintf(out, "%d workers were inside, on at most %d places at once, and %d in the end\n", workers, places, more)
	return nil
}

// size is how many places a worker needs.
func size(id int) int {
	if id%3 == 0 {
		return 2
	}
	return 1
}

// worker goes in once, when there is room.
func worker(ctx context.Context, servers string, id int, p *pool) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	sem, err := semaphore.New(m, poolPath, places)
	if err != nil {
		return err
	}
	lease, err := sem.AcquireN(ctx, size(id)) // all of them or none
	if err != nil {
		return err
	}
	held, cancel := lease.Context(ctx) // ends if the places are lost
	defer cancel()
	p.enter(id)
	select {
	case <-time.After(work):
	case <-held.Done():
		err = context.Cause(held)
	}
	p.leave(id)
	return errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
}

// operator makes the pool larger for all processes when half of the workers are done. The new
// limit stays on the server, so the operator takes it back in the end.
func operator(ctx context.Context, servers string, p *pool) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	sem, err := semaphore.New(m, poolPath, places)
	if err != nil {
		return err
	}
	select {
	case <-p.half:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.grow()
	if err = sem.Resize(ctx, more); err == nil {
		err = p.wait(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, sem.ResetLimit(last))
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}

// pool notes which workers are inside, without asking ZooKeeper, and shows it.
type pool struct {
	out    io.Writer
	format string        // of one state of the line
	half   chan struct{} // closed when half of the workers are done
	all    chan struct{} // closed when all of them are

	mu     sync.Mutex
	inside [workers]bool
	done   int
	limit  int
	over   int // more places than the limit that were taken, if any ever were
}

func (p *pool) enter(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside[id] = true
	p.showLocked()
}

func (p *pool) leave(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside[id] = false
	p.done++
	switch p.done {
	case workers / 2:
		close(p.half)
	case workers:
		close(p.all)
	}
	p.showLocked()
}

// grow tells the pool that the limit is about to be raised.
func (p *pool) grow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = more
}

// wait waits until all workers are done.
func (p *pool) wait(ctx context.Context) error {
	select {
	case <-p.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pool) showLocked() {
	var line strings.Builder
	taken := 0
	for id, in := range p.inside {
		column := "·"
		if in {
			taken += size(id)
			column = strconv.Itoa(id)
		}
		line.WriteString(" " + strings.Repeat(column, size(id)))
	}
	if taken > p.limit {
		p.over = taken
	}
	fmt.Fprintf(p.out, p.format, fmt.Sprintf("inside:%s   places: %d   done: %2d of %d", line.String(), p.limit, p.done, workers))
}

// isTerminal reports whether a line can be written over.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
