package zktest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long a server may take to end after SIGTERM.
const stopWithin = 15 * time.Second

var (
	errRunning = errors.New("server is running already")
	errStopped = errors.New("server is not running")
	errClosed  = errors.New("ensemble is closed")
)

// server is one member of an ensemble, running or not.
type server struct {
	dir     string
	port    int
	secure  int // port for TLS, if it has one
	command func() *exec.Cmd

	mu     sync.Mutex // guards what follows; not held while waiting for the process
	proc   *process   // the latest run; nil before the first
	paused bool
	closed bool
}

func (s *server) addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// launch starts the process and does not wait for it to serve.
func (s *server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.proc.running() {
		return errRunning
	}
	// Appended to: the log covers all runs.
	out, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() // the child has its own
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = out, out
	proc, err := startProcess(cmd)
	if err != nil {
		return err
	}
	s.proc, s.paused = proc, false
	return nil
}

// current returns the latest run, or nil when it is over.
func (s *server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return nil
	}
	return s.proc
}

// awake reports whether the server is running and not paused.
func (s *server) awake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.running() && !s.paused
}

func (s *server) stop() error {
	proc := s.current()
	if proc == nil {
		return nil
	}
	if err := proc.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process gets the signal only once it goes on.
	if err := proc.resume(); err != nil {
		return err
	}
	if proc.wait(stopWithin) {
		return nil
	}
	return errors.Join(fmt.Errorf("server did not end within %v of SIGTERM, killed", stopWithin), proc.kill())
}

func (s *server) kill() error {
	proc := s.current()
	if proc == nil {
		return nil
	}
	return proc.kill()
}

// setPaused stops or continues the process.
func (s *server) setPaused(paused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return errStopped
	}
	change := s.proc.resume
	if paused {
		change = s.proc.pause
	}
	if err := change(); err != nil {
		return err
	}
	s.paused = paused
	return nil
}

// close kills the server and keeps it from being started again.
func (s *server) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.kill()
}

func (s *server) logFile() string { return filepath.Join(s.dir, "server.log") }

// log returns the last lines of the server's output, at most size bytes.
func (s *server) log(size int64) string {
	f, err := os.Open(s.logFile())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	cut := false
	if info, err := f.Stat(); err == nil && info.Size() > size {
		_, err = f.Seek(-size, io.SeekEnd)
		cut = err == nil
	}
	text, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return err.Error()
	}
	if cut { // begin with a whole line
		_, after, _ := strings.Cut(string(text), "\n")
		return after
	}
	return string(text)
}
