package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"
)

// readCommand is the first argument of a process that reads from a server all the time. It is a process of its own so
// that it shares neither a connection nor the Go runtime with the rivals.
const readCommand = "read"

// briefly is how long the neighbour reads alone, at least.
const briefly = 100 * time.Millisecond

// neighbour is how often another client of the same server reads while all workers are busy, and while they are not.
func neighbour(ctx context.Context, s *scene) (out []float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	reader, err := startRemote("neighbour", exec.Command(self, readCommand, s.plan.server(0), s.plan.path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	var o outcome
	alone, err := reader.pace(ctx, func() error {
		select {
		case <-time.After(max(s.span, briefly)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	beside, err := reader.pace(ctx, func() (err error) {
		o, err = s.run(ctx)
		return err
	})
	return []float64{beside, alone, o.rate()}, err
}

// pace returns how often in a second the process reads while f runs.
func (r *remote) pace(ctx context.Context, f func() error) (float64, error) {
	before, err := r.reads(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	after, err := r.reads(ctx)
	return float64(after-before) / took.Seconds(), err
}

// reads returns how often the process has read so far.
func (r *remote) reads(ctx context.Context) (int64, error) {
	words, err := r.call(ctx, "reads")
	if err != nil || len(words) != 1 {
		return 0, errors.Join(err, fmt.Errorf("%s: reads: %q", r.name, words))
	}
	return strconv.ParseInt(words[0], 10, 64)
}

// runReader is that process: it gets one node, again and again, and answers each line with how often it has. It ends
// with its input.
func runReader(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: want an address and a path, got %q", readCommand, args)
	}
	c, err := dial(ctx, args[0], nil)
	if err != nil {
		return err
	}
	var reads atomic.Int64
	failed := make(chan error, 1)
	go func() {
		for {
			if _, _, err := c.Get(args[1]); err != nil {
				failed <- err
				return
			}
			reads.Add(1)
		}
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		select {
		case err := <-failed:
			return err
		default:
			fmt.Fprintln(out, "ok", reads.Load())
		}
	}
	c.Close()
	<-failed
	return nil
}
