package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "embed"
)

// With -before, an earlier state of this library is a rival: a commit, which is built from the history. Then each of the
// two states has a process of its own.

//go:embed serve.go
var serveSource []byte

// beforeMain lets the program of an earlier state, which may not know serveCommand, be a server.
const beforeMain = `package main

import (
	"context"
	"fmt"
	"os"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		if err := runServer(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "rivals:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
`

// buildBefore builds this program as it was at a commit, and returns the path of the binary, which is below dir.
func buildBefore(ctx context.Context, commit, dir string) (string, error) {
	tree, binary := filepath.Join(dir, "before"), filepath.Join(dir, "rivals-before")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return "", err
	}
	top, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "before.tar")
	if _, err := output(ctx, strings.TrimSpace(top), "git", "archive", "-o", archive, commit); err != nil {
		return "", err
	}
	if _, err := output(ctx, tree, "tar", "-xf", archive); err != nil {
		return "", err
	}
	program := filepath.Join(tree, "bench", "rivals")
	_, missing := os.Stat(filepath.Join(program, "serve.go"))
	if missing != nil {
		err = errors.Join(os.WriteFile(filepath.Join(program, "serve.go"), serveSource, 0o644),
			os.WriteFile(filepath.Join(program, "serve_before.go"), []byte(beforeMain), 0o644))
		if err != nil {
			return "", err
		}
	}
	_, err = output(ctx, filepath.Join(tree, "bench"), "go", "build", "-o", binary, "./rivals")
	return binary, err
}

// output runs a command in a directory. Its error has what the command has written.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// startOurs makes r the working tree's state: in this process, or in one of its own, as the state before has.
func (r *oneRival) startOurs(apart bool) error {
	const version = "the working tree"
	if !apart {
		r.version, r.open = version, inProcess(connectOurs)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return r.startState(self, version)
}

func (r *oneRival) startBefore(ctx context.Context, commit, dir string) error {
	program, err := buildBefore(ctx, commit, dir)
	if err != nil {
		return err
	}
	return r.startState(program, "turnstile at "+commit)
}

// startState makes r a rival whose teams are in a process of a program of ours.
func (r *oneRival) startState(program, version string) error {
	p, err := startRemote(r.name, exec.Command(program, serveCommand))
	if err != nil {
		return err
	}
	r.version, r.closer = version, p
	r.open = func(ctx context.Context, p2 plan) (team, error) {
		if _, err := p.call(ctx, planWords(p2)...); err != nil {
			return nil, err
		}
		return stateTeam{remoteTeam{p}}, nil
	}
	return nil
}

// stateTeam is a team of ours in another process, which can also watch its session.
type stateTeam struct{ remoteTeam }

func (t stateTeam) Watch(ctx context.Context) (func() vitals, error) {
	if err := t.do(ctx, "watch"); err != nil {
		return nil, err
	}
	return func() vitals {
		words, err := t.r.call(ctx, "vitals")
		if err != nil || len(words) != 2 {
			return vitals{left: -1}
		}
		lost, _ := strconv.ParseInt(words[0], 10, 64)
		left, _ := strconv.ParseInt(words[1], 10, 64)
		return vitals{lost, time.Duration(left)}
	}, nil
}

// besideBefore lists the rows in which the working tree is less than 0.95 times as good as the state before.
func (all results) besideBefore() string {
	var b strings.Builder
	for _, r := range all {
		for i, m := range r.row.metrics {
			if x := r.better(beforeName, i); m.unit.ratio && x < 0.95 {
				fmt.Fprintf(&b, "- %s %s: %.2f\n", r.row, m.name, x)
			}
		}
	}
	if b.Len() == 0 {
		return "No row is below 0.95 of before.\n"
	}
	return "Below 0.95 of before:\n\n" + b.String()
}
