package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// startWithin bounds the start of a server on a busy machine.
const startWithin = 2 * time.Minute

// server is a database server that the first test which needs it starts, and TestMain ends.
type server struct {
	driver string
	source func(dir string) string            // of a connection to the server in this directory
	run    func(s *server) (*exec.Cmd, error) // makes the data, and returns the command that serves it
	tables []string                           // statements that make them

	once   sync.Once
	dir    string
	attr   *syscall.SysProcAttr
	db     *sql.DB
	exited chan struct{} // closed when the process has ended, nil before it was started
	cmd    *exec.Cmd
	err    error
}

// errMissing says that a database is not installed.
var errMissing = errors.New("missing")

// open returns the server's database. If the server is not installed, the test is skipped, or fails in CI.
func (s *server) open(t *testing.T) *sql.DB {
	t.Helper()
	s.once.Do(func() { s.err = s.start(t) })
	if errors.Is(s.err, errMissing) {
		testserver.Missing(t, s.err)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.db
}

func (s *server) start(t *testing.T) (err error) {
	s.dir, err = os.MkdirTemp("", "turnstile-db-") //nolint:usetesting // the server outlives the test that starts it
	if err != nil {
		return err
	}
	if s.attr, err = attributes(s.dir); err != nil {
		return err
	}
	if s.cmd, err = s.run(s); err != nil {
		return err
	}
	if err := s.serve(); err != nil {
		return err
	}
	if s.db, err = sql.Open(s.driver, s.source(s.dir)); err != nil {
		return err
	}
	zktest.Eventually(t, startWithin, s.driver+" serves", func() bool {
		select {
		case <-s.exited:
			text, _ := os.ReadFile(s.log())
			t.Fatalf("the server has ended:\n%s", text)
		default:
		}
		return s.db.PingContext(t.Context()) == nil
	})
	for _, statement := range s.tables {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (s *server) log() string { return filepath.Join(s.dir, "log") }

// command is a program that runs as the owner of the server's directory.
func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attr
	return cmd
}

// serve starts the server, on a thread that lives as long as the server does: see attributes.
func (s *server) serve() error {
	log, err := os.Create(s.log())
	if err != nil {
		return err
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	started := make(chan error)
	exited := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer log.Close()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.exited = exited
	return nil
}

// stop ends the server and removes its data.
func (s *server) stop() {
	if s.db != nil {
		_ = s.db.Close()
	}
	if s.exited != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // to PostgreSQL: at once
		if s.driver == "mysql" {
			_ = s.cmd.Process.Kill()
		}
		<-s.exited
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// program returns the newest of the files that the patterns match.
func program(patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%w: %v (make deps installs it)", errMissing, patterns)
}

// within returns a context for a test, which bounds its waits.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*testserver.Patience)
	t.Cleanup(cancel)
	return ctx
}

var must = expect.NoError

func TestMain(m *testing.M) { testserver.Main(m, postgres.stop, mariadb.stop) }
