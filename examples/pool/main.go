// Pool lets three of ten workers in at a time, each with a session of its own as if it were
// another process, and shows on one line who is inside.
//
//	go run ./examples/pool                  # with a server in the process
//	go run ./examples/pool -zk host:2181    # with a ZooKeeper of yours
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
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
	places   = 3
	poolPath = "/pool/places"
	work     = 200 * time.Millisecond // what each does inside
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
	p := pool{out: out, format: "%s\n"}
	if isTerminal(out) {
		p.format = "\r%s" // all lines are of one length
	}
	g, ctx := errgroup.WithContext(ctx)
	for id := range workers {
		g.Go(func() error { return worker(ctx, servers, id, &p) })
	}
	err := g.Wait()
	if isTerminal(out) {
		fmt.Fprintln(out)
	}
	if err != nil {
		return err
	}
	if p.most > places {
		return fmt.Errorf("%d were inside at once", p.most)
	}
	fmt.Fprintf(out, "%d workers were inside, at most %d at once\n", workers, p.most)
	return nil
}

// worker goes in once, when there is a place.
func worker(ctx context.Context, servers string, id int, p *pool) error {
	m, err := session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer m.Close()
	sem, err := semaphore.New(m, poolPath, places)
	if err != nil {
		return err
	}
	return sem.Do(ctx, func(ctx context.Context) error { // ctx ends when the place is lost
		p.enter(id)
		defer p.leave(id)
		select {
		case <-time.After(work):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// pool sees who is inside without asking ZooKeeper, and shows it.
type pool struct {
	out    io.Writer
	format string // of one state of the line

	mu     sync.Mutex
	inside [workers]bool
	done   int
	most   int // inside at once, so far
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
	p.showLocked()
}

func (p *pool) showLocked() {
	var line strings.Builder
	n := 0
	for id, in := range p.inside {
		if in {
			n++
			fmt.Fprintf(&line, " %d", id)
		} else {
			line.WriteString(" ·")
		}
	}
	p.most = max(p.most, n)
	fmt.Fprintf(p.out, p.format, fmt.Sprintf("inside:%s   done: %2d of %d", line.String(), p.done, workers))
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
