// Intention is a kind of lock of its own, made with package queue: the intention locks that databases have for
// tables and their rows. A table of accounts is in use by three processes. Transfers lock the table in mode IX
// and two rows in mode X, so they run at the same time unless they want the same row. Audits lock the whole
// table in mode S, and closing the books locks it in mode X. The lock is lock.go.
//
//	go run ./examples/intention                  # with a server in the process
//	go run ./examples/intention -zk host:2181    # with a ZooKeeper of yours
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	processes = 3
	clerks    = 4 // of each process, at work at the same time
	transfers = 5 // of each clerk
	audits    = 5 // of each process
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "intention:", err)
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
	t := newTable()
	g, gctx := errgroup.WithContext(ctx)
	for i := range processes {
		g.Go(func() error { return process(gctx, servers, i, t) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d transfers, at most %d at the same time\n", processes*clerks*transfers, t.most())
	fmt.Fprintf(out, "%d audits, and each found the right sum\n", processes*audits)
	return nil
}

// process is one process: some clerks, an auditor, and one that closes the books.
func process(ctx context.Context, servers string, id int, t *table) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	g, ctx := errgroup.WithContext(ctx)
	for clerk := range clerks {
		g.Go(func() error {
			for i := range transfers {
				from := (id + clerk + i) % accounts
				to := (from + 1 + i%(accounts-1)) % accounts
				if err := t.transfer(ctx, m, from, to); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for range audits {
			if err := t.audit(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error { return t.closeBooks(ctx, m) })
	return g.Wait()
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}
