package interop_test

import (
	"bufio"
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
	must(t, err)
	must(t, cmd.Start())
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

// programs are the Java programs, each compiled once.
var programs struct {
	sync.Mutex
	dir string
	of  map[string]*javaclient.Program
}

// compiled returns a program of testdata.
func compiled(t *testing.T, class string) *javaclient.Program {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if p := programs.of[class]; p != nil {
		return p
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "interop-") //nolint:usetesting // other tests use it too
		must(t, err)
		programs.dir, programs.of = dir, make(map[string]*javaclient.Program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	p, err := javaclient.CompileCurator(ctx, filepath.Join("testdata", class+".java"), programs.dir)
	if errors.Is(err, java.ErrMissing) {
		testserver.Missing(t, err)
	}
	must(t, err)
	programs.of[class] = p
	return p
}

func removeCompiled() {
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
}

// newJava is Curator.
func newJava(t *testing.T, s *site) crew {
	t.Helper()
	program := compiled(t, "CuratorClient")
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	return startProgram(t, program.Command(ctx, s.arguments(t)...), cancel)
}

// dialog is a Java program that is told what to do, a line each, and says what happens.
type dialog struct {
	stdin io.Writer
	lines chan string
}

// startDialog starts a program. It ends by itself when its input does.
func startDialog(t *testing.T, class string, args ...string) *dialog {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := compiled(t, class).Command(ctx, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	d := &dialog{stdin, make(chan string, 100)}
	go func() {
		defer close(d.lines)
		for in := bufio.NewScanner(stdout); in.Scan(); {
			d.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		for range d.lines { // until the program has ended
		}
		_ = cmd.Wait()
	})
	return d
}

func (d *dialog) order(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(d.stdin, line+"\n")
	must(t, err)
}

func (d *dialog) answers(t *testing.T, question, want string) {
	t.Helper()
	d.order(t, question)
	d.says(t, want)
}

func (d *dialog) says(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-d.lines:
		if got != want {
			t.Fatalf("Java says %q, want %q", got, want)
		}
	case <-time.After(limit / 2):
		t.Fatalf("Java does not say %q", want)
	}
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
	must(t, os.WriteFile(filepath.Join(classes, "curator_locks.py"), []byte(pasted(t)), 0o600))
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
	must(t, err)
	_, code, ok := strings.Cut(string(page), "\n```python\n")
	if ok {
		code, _, ok = strings.Cut(code, "\n```\n")
	}
	if !ok {
		t.Fatal("no Python code on the page")
	}
	return code + "\n"
}
