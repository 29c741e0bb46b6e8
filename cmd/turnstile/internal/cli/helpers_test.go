package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// result is what a call of the program has left.
type result struct {
	code        int
	stdout, err string
}

// call runs the program with an environment of name=value. Run gets a process of its own, whose children are its own.
func call(ctx context.Context, env []string, args ...string) result {
	if slices.Contains(args, "run") && !slices.Contains(args, "help") {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Env = append(append(os.Environ(), programEnv+"=1"), env...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	}
	var stdout, stderr buffer // the log and a child can write at the same time
	app := &App{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Env: lookup(env)}
	code := app.Run(ctx, args)
	return result{code, stdout.String(), stderr.String()}
}

// lookup returns a function like os.Getenv.
func lookup(env []string) func(string) string {
	return func(name string) string {
		for _, e := range env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

// want checks an exit status, and that stderr contains each of some texts.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit status %d, want %d; stderr: %s", r.code, code, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.err, text) {
			t.Errorf("stderr %q does not contain %q", r.err, text)
		}
	}
}

// matches checks that stdout has lines that match.
func (r result) matches(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(r.stdout) {
			t.Errorf("no %s in\n%s", pattern, r.stdout)
		}
	}
}

// buffer is a bytes.Buffer that may be read while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
