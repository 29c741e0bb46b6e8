// Command soak uses all kinds of locks at random for a long time, while networks, sessions, servers
// and managers fail, and checks that nothing is left. Every few seconds all workers release their
// locks. Then this process must have no more goroutines and open files, and the server no more
// nodes, watches, sessions and connections, than before the first cycle. The command fails if
// they have, if the heap grows, if a lock is held twice, or if a free lock cannot be taken.
//
//	go run ./soak -for 2h -write
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

const (
	page    = "../docs/measured/soak.md"
	picture = "../docs/measured/soak.png"
)

func main() {
	length := flag.Duration("for", time.Minute, "how long to run; the last cycle is finished")
	seed := flag.Uint64("seed", 0, "seed of what is done and what goes wrong; 0: a new one")
	write := flag.Bool("write", false, "write the table into "+page+" and draw "+picture+"; run from bench/")
	flag.Parse()
	if err := soakFor(*length, *seed, *write); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soakFor(length time.Duration, seed uint64, write bool) (err error) {
	if length <= 0 || flag.NArg() > 0 {
		return fmt.Errorf("want -for a positive time, and nothing else: %v %q", length, flag.Args())
	}
	elsewhere := filepath.Join(os.TempDir(), "turnstile-soak.png")
	png := elsewhere
	if write {
		png = picture
		if _, err := os.Stat(page); err != nil { // before hours have gone by
			return err
		}
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop() // an interrupt ends the run after its cycle
	s, err := newSoak(length, seed)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	fmt.Printf("seed %d\n", seed)
	if err := s.run(ctx, length, func(line string) { fmt.Println(line) }); err != nil {
		drawn := "drawn in " + elsewhere
		if err := s.draw(elsewhere); err != nil {
			drawn = err.Error()
		}
		return fmt.Errorf("seed %d, after %v (%s): %w", seed, time.Since(s.start).Round(time.Second), drawn, err)
	}
	text := s.table()
	fmt.Println("\n" + text)
	fmt.Printf("covered: %d uses of locks, %d faults\n", s.tally.total(s.tally.ops), s.tally.total(s.tally.faults))
	if err := s.draw(png); err != nil {
		return err
	}
	fmt.Println(png)
	if !write {
		return nil
	}
	return report.Section(page, "soak", text+"\n![soak](soak.png)\n")
}
