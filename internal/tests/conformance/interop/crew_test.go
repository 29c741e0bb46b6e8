package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/java"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// limit bounds a test. After it the programs in other languages end in any case.
const limit = 2 * time.Minute

// crew plays the clients that are written in one language.
type crew interface {
	// enter has a client take a kind of lock several times, from now on and in the
	// background. Each name is a client with a session of its own.
	enter(t *testing.T, client, kind string, times int)
	// finish waits for all clients and returns what went wrong.
	finish() error
}

// site is where a contest takes place.
type site struct {
	path   string // of the lock
	leases int    // how many may share it, if it is a semaphore
	*journal
}

// newSite skips the test where one of the rivals is not installed.
func newSite(t *testing.T, leases int) *site {
	t.Helper()
	if !testserver.Real(t) {
		testserver.Missing(t, zktest.ErrNoZooKeeper)
	}
	s := &site{path: testserver.Path(t), leases: leases, journal: newJournal(t)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("still inside: %v", inside(s.events(t)))
		}
	})
	return s
}

// program is a crew in a process of its own. It reads on its standard input which client
// enters, and ends with that input, also if this process dies.
type program struct {
	stdin io.WriteCloser
	wait  func() error
}

func startProgram(t *testing.T, cmd *exec.Cmd, cancel context.CancelFunc) crew {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{stdin: stdin, wait: sync.OnceValue(func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out.String())
		}
		return nil
	})}
	t.Cleanup(func() {
		cancel()
		if err := p.wait(); err != nil && t.Failed() {
			t.Log(err)
		}
	})
	return p
}

func (p *program) enter(t *testing.T, client, kind string, times int) {
	t.Helper()
	if _, err := fmt.Fprintln(p.stdin, client, kind, times); err != nil {
		t.Fatalf("%v; %v", err, p.finish())
	}
}

func (p *program) finish() error {
	_ = p.stdin.Close() // it may be closed already, by the end of the process
	return p.wait()
}

// arguments are those of both programs.
func (s *site) arguments(t *testing.T) []string {
	return []string{
		testserver.Server(t).Addr(0), s.path, s.dir,
		strconv.Itoa(s.leases), strconv.Itoa(int(limit.Seconds())),
	}
}

// compiled is the Java program, compiled once.
var compiled struct {
	once    sync.Once
	dir     string
	program *javaclient.Program
	err     error
}

func compile() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if compiled.dir, compiled.err = os.MkdirTemp("", "interop-"); compiled.err != nil {
		return
	}
	compiled.program, compiled.err = javaclient.CompileCurator(ctx, filepath.Join("testdata", "CuratorClient.java"), compiled.dir)
}

func removeCompiled() {
	if compiled.dir != "" {
		_ = os.RemoveAll(compiled.dir)
	}
}

// newJava is Curator.
func newJava(t *testing.T, s *site) crew {
	t.Helper()
	compiled.once.Do(compile)
	if errors.Is(compiled.err, java.ErrMissing) {
		testserver.Missing(t, compiled.err)
	}
	if compiled.err != nil {
		t.Fatal(compiled.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	return startProgram(t, compiled.program.Command(ctx, s.arguments(t)...), cancel)
}

// python is Debian's own, which has Debian's kazoo.
const python = "/usr/bin/python3"

var errNoKazoo = errors.New("kazoo is not installed")

// newPython is kazoo, with the classes that the page gives.
func newPython(t *testing.T, s *site) crew {
	t.Helper()
	if err := exec.Command(python, "-c", "import kazoo").Run(); err != nil {
		testserver.Missing(t, errNoKazoo)
	}
	classes := t.TempDir()
	if err := os.WriteFile(filepath.Join(classes, "curator_locks.py"), []byte(pasted(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join("testdata", "kazoo_client.py")
	// It is read here, so that go test knows that its result depends on this file.
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cmd := exec.CommandContext(ctx, python, append([]string{program}, s.arguments(t)...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+classes+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"), "PYTHONDONTWRITEBYTECODE=1")
	return startProgram(t, cmd, cancel)
}

// pasted returns the Python code on the page.
func pasted(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "interop.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(page), "\n```python\n")
	if ok {
		code, _, ok = strings.Cut(code, "\n```\n")
	}
	if !ok {
		t.Fatal("no Python code on the page")
	}
	return code + "\n"
}
