package versions_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// before is the program of the version before, built once.
var before struct {
	once    sync.Once
	dir     string
	program string
	err     error
}

// programBefore returns the program of the version before. Without the history the test is skipped.
func programBefore(t *testing.T) string {
	t.Helper()
	before.once.Do(buildBefore)
	if errors.Is(before.err, errNoHistory) {
		testserver.Missing(t, before.err)
	}
	if before.err != nil {
		t.Fatal(before.err)
	}
	return before.program
}

func buildBefore() {
	if before.dir, before.err = os.MkdirTemp("", "versions-"); before.err == nil {
		before.program, before.err = build(before.dir)
	}
}

func removeBefore() {
	if before.dir != "" {
		_ = os.RemoveAll(before.dir)
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
	if err := write(filepath.Join(module, driverDir, "main", "main.go"), strings.NewReader(mainProgram)); err != nil {
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

// extract writes the files of a commit into a directory.
func extract(ctx context.Context, commit, dir string) error {
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", "-C", filepath.Join("..", "..", "..", ".."), "archive", commit)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: git archive %s: %w: %s", errNoHistory, commit, err, problems.Bytes())
	}
	archive := tar.NewReader(&out)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		if err := write(filepath.Join(dir, h.Name), archive); err != nil {
			return err
		}
	}
}

func write(name string, content io.Reader) error {
	b, err := io.ReadAll(content)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = os.WriteFile(name, b, fs.FileMode(0o600))
	}
	return err
}
