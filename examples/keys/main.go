// Keys locks by key: three replicas of a service charge invoices, each invoice under a lock of its own. Each of them is asked
// to charge every invoice, by several goroutines at once, as if a queue had delivered each message more than once. The
// work on one invoice never overlaps, so each is charged once. Different invoices do not wait for each other.
//
//	go run ./examples/keys                  # with a server in the process
//	go run ./examples/keys -zk host:2181    # with a ZooKeeper of yours
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

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	replicas = 3
	invoices = 20
	workers  = 5 // of each replica
	dir      = "/keys/invoices"
)

func main() {
	servers := flag.String("zk", "", "connect string of a ZooKeeper, `host:port`; by default a server in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
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
	b := &book{paid: make(map[string]int), busy: make(map[string]bool)}
	g, gctx := errgroup.WithContext(ctx)
	for range replicas {
		g.Go(func() error { return replica(gctx, servers, b) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if b.overlaps > 0 || b.charges != invoices {
		return fmt.Errorf("%d charges for %d invoices, %d overlaps", b.charges, invoices, b.overlaps)
	}
	fmt.Fprintf(out, "%d requests in %d replicas: %d invoices, each charged once\n", replicas*workers*invoices, replicas, invoices)
	return nil
}

// replica is one process of the service: its workers charge all invoices.
func replica(ctx context.Context, servers string, b *book) error {
	m, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer m.Close()
	locks, err := newLocks(m)
	if err != nil {
		return err
	}
	return chargeAll(ctx, locks, b)
}

// newLocks returns the locks of a replica, whose workers stand in each queue as one.
func newLocks(m *session.Manager) (*zklock.Keyed, error) {
	return zklock.NewKeyed(m, dir, zklock.WithLocalHandover(workers))
}

// locker is a lock for each key.
type locker interface {
	Do(ctx context.Context, key string, f func(context.Context) error) error
}

// chargeAll has the workers charge all invoices.
func chargeAll(ctx context.Context, locks locker, b *book) error {
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			for i := range invoices {
				id := fmt.Sprintf("2026/%d", (i+w*invoices/workers)%invoices) // any string is a key
				err := locks.Do(ctx, id, func(ctx context.Context) error { return b.charge(ctx, id) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// connect gives up after some seconds, so that a wrong -zk shows. Without a deadline, Connect
// waits until there is a server.
func connect(ctx context.Context, servers string) (*session.Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	return session.Connect(ctx, servers, session.WithLogger(slog.New(slog.DiscardHandler)))
}

// book stands for the database of the service. Its mutex guards the maps, and not the work on an invoice.
type book struct {
	mu       sync.Mutex
	paid     map[string]int
	busy     map[string]bool
	charges  int
	overlaps int // charges of an invoice while it was being charged
}

// charge looks whether an invoice is paid, and charges it if not. Without a lock, two could find it unpaid.
func (b *book) charge(ctx context.Context, id string) error {
	if b.begin(id) {
		b.end(id, false)
		return nil
	}
	select {
	case <-time.After(5 * time.Millisecond): // the payment
	case <-ctx.Done(): // the lock is lost: another replica may charge the invoice
		b.end(id, false)
		return context.Cause(ctx)
	}
	b.end(id, true)
	return nil
}

// begin reports whether the invoice is paid.
func (b *book) begin(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[id] {
		b.overlaps++
	}
	b.busy[id] = true
	return b.paid[id] > 0
}

func (b *book) end(id string, charged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[id] = false
	if charged {
		b.paid[id]++
		b.charges++
	}
}
