package versions_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// buildTime is how long the build of the version before may take on a busy machine, with nothing in Go's build cache.
const buildTime = 10 * time.Minute

// driverDir is where the driver is in the module.
const driverDir = "internal/tests/conformance/versions/driver"

// errNoHistory says that the version before cannot be had.
var errNoHistory = errors.New("git does not have the version before")

// built is the program of the version before, built once.
var built struct {
	once    sync.Once
	dir     string
	program string
	err     error
}

// programBefore returns the program of the version before. Without the history the test is skipped.
func programBefore(t *testing.T) string {
	t.Helper()
	built.once.Do(buildBefore)
	if errors.Is(built.err, errNoHistory) {
		testserver.Missing(t, built.err)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.program
}

func buildBefore() {
	if built.dir, built.err = os.MkdirTemp("", "versions-"); built.err == nil {
		built.program, built.err = build(built.dir)
	}
}

func removeBefore() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

const mainProgram = `package main

import "github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"

func main() {
	if err := driver.Main(); err != nil {
		panic(err)
	}
}
`

// build lays the driver over the version before, and builds it there. So it is a package of that module,
// and needs nothing but what that module needs.
func build(dir string) (program string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	commit, err := os.ReadFile(filepath.Join("testdata", "commit"))
	if err != nil {
		return "", err
	}
	module := filepath.Join(dir, "module")
	if err := extract(ctx, strings.TrimSpace(string(commit)), module); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(module, driverDir)); err != nil { // it has one of its own
		return "", err
	}
	if err := os.CopyFS(filepath.Join(module, driverDir), os.DirFS("driver")); err != nil {
		return "", err
	}
	main := filepath.Join(module, driverDir, "main")
	if err := os.Mkdir(main, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(main, "main.go"), []byte(mainProgram), 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "before")
	// With -trimpath Go's build cache does not depend on the temporary directory.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./"+driverDir+"/main")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the version before: %w\n%s", err, out)
	}
	return program, nil
}

// extract checks a commit out into a directory.
func extract(ctx context.Context, commit, dir string) error {
	for _, args := range [][]string{
		{"clone", "--quiet", "--no-checkout", "--shared", filepath.Join("..", "..", "..", ".."), dir},
		{"-C", dir, "checkout", "--quiet", commit},
	} {
		if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: git %v: %w: %s", errNoHistory, args, err, out)
		}
	}
	return nil
}
