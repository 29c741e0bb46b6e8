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
	"strings"
	"time"
)

// remote is a program in another language that has a team, one at a time. Each line of its
// standard input is a command with its arguments, and is answered by one line:
// "ok" and results, or "error" and what it was. It ends with its input.
type remote struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // its output; closed at the end
}

func startRemote(name string, cmd *exec.Cmd) (*remote, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &remote{name: name, cmd: cmd, in: in, lines: make(chan string, 1)}
	go func() {
		defer close(r.lines)
		for in := bufio.NewReader(out); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			r.lines <- line
		}
	}()
	return r, nil
}

// Close ends the program, by force if it does not end by itself.
func (r *remote) Close() error {
	_ = r.in.Close()
	force := time.AfterFunc(10*time.Second, func() { _ = r.cmd.Process.Kill() })
	defer force.Stop()
	for range r.lines {
	}
	return r.cmd.Wait()
}

// call sends a command and returns the words of the answer.
func (r *remote) call(ctx context.Context, words ...any) ([]string, error) {
	if _, err := fmt.Fprintln(r.in, words...); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	select {
	case line, ok := <-r.lines:
		status, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: it has ended", r.name)
		case status != "ok":
			return nil, fmt.Errorf("%s: %v: %s", r.name, words, line)
		}
		return strings.Fields(rest), nil
	case <-ctx.Done():
		_ = r.cmd.Process.Kill() // its answer would be taken for that to another command
		return nil, fmt.Errorf("%s: %v: %w", r.name, words, ctx.Err())
	}
}

func (r *remote) open(ctx context.Context, p plan) (team, error) {
	if _, err := r.call(ctx, "open", p.kind, p.servers, p.path, p.sessions, p.workers, p.leases, p.apart, p.locks, p.every, p.turns); err != nil {
		return nil, err
	}
	return remoteTeam{r}, nil
}

// remoteTeam is the team of a remote.
type remoteTeam struct{ r *remote }

func (t remoteTeam) do(ctx context.Context, command string) error {
	_, err := t.r.call(ctx, command)
	return err
}

func (t remoteTeam) Hold(ctx context.Context) error    { return t.do(ctx, "hold") }
func (t remoteTeam) Drop(ctx context.Context) error    { return t.do(ctx, "drop") }
func (t remoteTeam) Queue(ctx context.Context) error   { return t.do(ctx, "queue") }
func (t remoteTeam) HoldAll(ctx context.Context) error { return t.do(ctx, "holdall") }
func (t remoteTeam) DropAll(ctx context.Context) error { return t.do(ctx, "dropall") }

func (t remoteTeam) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return t.do(ctx, "close")
}

func (t remoteTeam) Memory(ctx context.Context) (uint64, error) {
	words, err := t.r.call(ctx, "memory")
	if err != nil || len(words) != 1 {
		return 0, errors.Join(err, fmt.Errorf("%s: memory: %q", t.r.name, words))
	}
	return strconv.ParseUint(words[0], 10, 64)
}

func (t remoteTeam) Processor(ctx context.Context) (time.Duration, error) {
	words, err := t.r.call(ctx, "processor")
	if err != nil || len(words) != 1 {
		return 0, errors.Join(err, fmt.Errorf("%s: processor: %q", t.r.name, words))
	}
	n, err := strconv.ParseInt(words[0], 10, 64)
	return time.Duration(n), err
}

func (t remoteTeam) Cycles(ctx context.Context, n int, hold time.Duration) (outcome, error) {
	return t.measure(ctx, "cycles", n, hold.Microseconds())
}

func (t remoteTeam) Try(ctx context.Context, n int) (outcome, error) { return t.measure(ctx, "try", n) }
func (t remoteTeam) Drain(ctx context.Context) (outcome, error)      { return t.measure(ctx, "drain") }

// measure reads what outcome is made of: nanoseconds, and two lists of them, each with a
// comma behind every number so that none is an empty word.
func (t remoteTeam) measure(ctx context.Context, words ...any) (outcome, error) {
	var o outcome
	got, err := t.r.call(ctx, words...)
	if err != nil {
		return o, err
	}
	if len(got) != 3 {
		return o, fmt.Errorf("%s: %v: want three words, got %d", t.r.name, words, len(got))
	}
	elapsed, err0 := nanoseconds(got[0])
	cycles, err1 := nanoseconds(got[1])
	gaps, err2 := nanoseconds(got[2])
	if err := errors.Join(err0, err1, err2); err != nil {
		return o, fmt.Errorf("%s: %v: %w", t.r.name, words, err)
	}
	if len(elapsed) != 1 {
		return o, fmt.Errorf("%s: %v: no time", t.r.name, words)
	}
	return outcome{elapsed[0], cycles, gaps}, nil
}

func nanoseconds(list string) ([]time.Duration, error) {
	var out []time.Duration
	for word := range strings.SplitSeq(strings.Trim(list, ","), ",") {
		if word == "" {
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, time.Duration(n))
	}
	return out, nil
}
