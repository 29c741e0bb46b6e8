// Locker makes code that takes a sync.Locker distributed, with one changed line: see worker.
// Three processes give out invoice numbers from one file. Their code is book.go, which has not
// been changed.
//
//	go run ./examples/locker                  # with a server in the process
//	go run ./examples/locker -zk host:2181    # with a ZooKeeper of yours
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	processes = 3
	invoices  = 20 // of each process
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	file := flag.String("work", "", "be one of the processes, with this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Lock has no context, so a worker notices a signal only between two numbers. A second
	// Ctrl-C ends the program at once.
	context.AfterFunc(ctx, stop)

	var err error
	if *file != "" {
		err = worker(ctx, os.Stdout, *servers, *file)
	} else {
		err = run(ctx, os.Stdout, *servers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "locker:", err)
		os.Exit(1)
	}
}

// worker is one process, which prints its numbers.
func worker(ctx context.Context, out io.Writer, servers, file string) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	lock, err := zklock.New(m, "/locker/invoices")
	if err != nil {
		return err
	}

	// The changed line. It was: book := NewBook(new(sync.Mutex), file)
	book := NewBook(lock.Locker(die), file)

	for range invoices {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := book.Next()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, n)
	}
	return nil
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}

// die is called when the lock is lost while Book uses the file. sync.Locker has no way to tell
// Book, so the process ends at once.
func die(err error) {
	fmt.Fprintln(os.Stderr, "locker: another process may use the file:", err)
	os.Exit(1)
}

// run starts three processes that draw their numbers at the same time, and looks for a number
// that was drawn twice.
func run(ctx context.Context, out io.Writer, servers string) error {
	if servers == "" {
		server, err := zktest.New()
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.ConnectString()
	}
	dir, err := os.MkdirTemp("", "locker-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	drawn := make([][]byte, processes)
	g, ctx := errgroup.WithContext(ctx)
	for i := range drawn {
		g.Go(func() error {
			cmd := exec.CommandContext(ctx, self, "-zk", servers, "-work", filepath.Join(dir, "invoices"))
			cmd.Stderr = os.Stderr
			// When ctx ends, a process gets the time to give the lock back.
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			cmd.WaitDelay = 5 * time.Second
			numbers, err := cmd.Output()
			drawn[i] = numbers
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, numbers := range drawn {
		numbers := bytes.Fields(numbers)
		fmt.Fprintf(out, "process %d: %s\n", i+1, bytes.Join(numbers, []byte(" ")))
		for _, n := range numbers {
			seen[string(n)] = true
		}
	}
	fmt.Fprintf(out, "%d processes, %d numbers, %d different\n", processes, processes*invoices, len(seen))
	if len(seen) != processes*invoices {
		return errors.New("a number was given out twice")
	}
	return nil
}
