// Shards spreads locks over several ZooKeeper ensembles, for more locks a second than one
// ensemble can serve. A hash of the path chooses its ensemble. The program shows which path is
// in which ensemble, that two processes exclude each other, and which paths move when an
// ensemble is added.
//
//	go run ./examples/shards                                              # with three servers in the process
//	go run ./examples/shards -zk red=h1:2181,h2:2181 -zk blue=h3:2181     # with ensembles of yours
//
// The last ensemble is the one that is added. There must be at least two.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/zktest"
)

const (
	processes = 2
	locks     = 12
	turns     = 5    // of each process with each lock
	many      = 1000 // paths, to see how they spread
	work      = time.Millisecond
)

func main() {
	var ensembles []ensemble
	flag.Func("zk", "an ensemble, `name=connect-string`; to be repeated. By default three servers in this process", func(s string) error {
		e, err := parseEnsemble(s)
		ensembles = append(ensembles, e)
		return err
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, ensembles); err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, ensembles []ensemble) error {
	if len(ensembles) == 0 {
		for _, name := range []string{"red", "green", "blue"} {
			server, err := zktest.New()
			if err != nil {
				return err
			}
			defer server.Close()
			ensembles = append(ensembles, ensemble{name, server.ConnectString()})
		}
	}
	if len(ensembles) < 2 {
		return fmt.Errorf("%d ensemble: want two or more", len(ensembles))
	}
	var all [processes]*shards
	for i := range all {
		s, err := connect(ctx, ensembles)
		if err != nil {
			return err
		}
		defer s.Close()
		all[i] = s
	}
	names := all[0].names
	before := names[:len(names)-1]
	show(out, names)
	if err := contend(ctx, all, func(s *shards, path string) (locker, error) { return s.mutex(path) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d processes took each lock %d times, never both at once\n", processes, turns)

	showMoves(out, before, names)
	// One process has heard of the new ensemble, and the other has not yet. Both take the lock
	// at the old place, and the first one takes it at the new place too.
	err := contend(ctx, all, func(s *shards, path string) (locker, error) {
		if s == all[0] {
			return s.movingMutex(path, before)
		}
		old := &shards{names: before, managers: s.managers}
		return old.mutex(path)
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "while it was added, never both at once")
	return nil
}

func pathOf(i int) string { return fmt.Sprintf("/shards/order-%d", i) }

// show prints which ensemble has which locks.
func show(out io.Writer, names []string) {
	for _, name := range names {
		var here []string
		for i := range locks {
			if place(pathOf(i), names) == name {
				here = append(here, fmt.Sprint(i))
			}
		}
		fmt.Fprintf(out, "%-6s has the orders %s\n", name, strings.Join(here, " "))
	}
}

// showMoves prints how many of many paths move when the last ensemble is added.
func showMoves(out io.Writer, before, names []string) {
	moved, astray := 0, 0
	added := names[len(names)-1]
	for i := range many {
		old, now := place(pathOf(i), before), place(pathOf(i), names)
		switch {
		case old == now:
		case now == added:
			moved++
		default:
			astray++
		}
	}
	fmt.Fprintf(out, "when %s was added, %d of %d paths moved to it, and %d elsewhere\n", added, moved, many, astray)
}

// contend has all processes take all locks at the same time, and fails if two processes have
// the same lock.
func contend(ctx context.Context, all [processes]*shards, lock func(*shards, string) (locker, error)) error {
	var inside [locks]atomic.Int32
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		for i := range locks {
			g.Go(func() error {
				l, err := lock(s, pathOf(i))
				if err != nil {
					return err
				}
				for range turns {
					err := l.Do(ctx, func(context.Context) error {
						n := inside[i].Add(1)
						defer inside[i].Add(-1)
						time.Sleep(work)
						if n > 1 {
							return fmt.Errorf("%d had %s at once", n, pathOf(i))
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return g.Wait()
}
