package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// serveCommand is the first argument of a process that has turnstile's teams, one at a time, as the programs of rivals in
// other languages do: see remote. With it, two states of this library are measured in one run, each in a process of its
// own. before.go puts this file beside an earlier state of this package, so it uses only what that state has too.
const serveCommand = "serve"

// runServer is that process. It ends with its input.
func runServer(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := s.do(ctx, words[0], words[1:])
		if err != nil {
			fmt.Fprintln(out, "error", strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		fmt.Fprintln(out, "ok", answer)
	}
	return nil
}

// server is what that process has: a team, and what Watch has returned.
type server struct {
	team *localTeam
	stop func() vitals
}

func (s *server) do(ctx context.Context, command string, args []string) (string, error) {
	if command == "open" {
		p, err := parsePlan(args)
		if err != nil {
			return "", err
		}
		t, err := openLocal(ctx, p, connectOurs)
		if err == nil {
			s.team = t.(*localTeam)
		}
		return "", err
	}
	t := s.team
	if t == nil {
		return "", fmt.Errorf("%s: there is no team", command)
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(append(args, "", "")[i]) // the caller is this program
		return n
	}
	switch command {
	case "cycles":
		return written(t.Cycles(ctx, number(0), time.Duration(number(1))*time.Microsecond))
	case "try":
		return written(t.Try(ctx, number(0)))
	case "drain":
		return written(t.Drain(ctx))
	case "hold":
		return "", t.Hold(ctx)
	case "drop":
		return "", t.Drop(ctx)
	case "queue":
		return "", t.Queue(ctx)
	case "holdall":
		return "", t.HoldAll(ctx)
	case "dropall":
		return "", t.DropAll(ctx)
	case "memory":
		n, err := t.Memory(ctx)
		return fmt.Sprint(n), err
	case "processor":
		d, err := t.Processor(ctx)
		return fmt.Sprint(d.Nanoseconds()), err
	case "watch":
		stop, err := t.Watch(ctx)
		s.stop = stop
		return "", err
	case "vitals":
		if s.stop == nil {
			return "", errors.New("nothing is watched")
		}
		v := s.stop()
		return fmt.Sprint(v.lost, v.left.Nanoseconds()), nil
	case "close":
		s.team, s.stop = nil, nil
		return "", t.Close()
	}
	return "", fmt.Errorf("there is no command %q", command)
}

// written returns a measurement as remoteTeam.measure reads it.
func written(o outcome, err error) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d ", o.elapsed.Nanoseconds())
	for _, list := range [][]time.Duration{o.cycles, o.gaps} {
		b.WriteByte(',')
		for _, d := range list {
			b.WriteString(strconv.FormatInt(d.Nanoseconds(), 10))
			b.WriteByte(',')
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String()), err
}

// planWords are the words of a plan that parsePlan reads.
func planWords(p plan) []any {
	return []any{"open", strings.ReplaceAll(string(p.kind), " ", "_"), p.servers, p.path, p.sessions, p.workers, p.leases, p.locks, p.every, p.turns, p.apart, p.lazy, p.async, p.shared}
}

func parsePlan(words []string) (p plan, err error) {
	if len(words) != 13 {
		return p, fmt.Errorf("a plan of %d words", len(words))
	}
	// The name of a kind can have a space, which is an underscore here.
	p.kind, p.servers, p.path = kind(strings.ReplaceAll(words[0], "_", " ")), words[1], words[2]
	for i, n := range []*int{&p.sessions, &p.workers, &p.leases, &p.locks, &p.every, &p.turns} {
		var wrong error
		*n, wrong = strconv.Atoi(words[3+i])
		err = errors.Join(err, wrong)
	}
	for i, b := range []*bool{&p.apart, &p.lazy, &p.async, &p.shared} {
		var wrong error
		*b, wrong = strconv.ParseBool(words[9+i])
		err = errors.Join(err, wrong)
	}
	return p, err
}
