package javaserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
)

// stopWithin is how long a server may take to end after SIGTERM.
const stopWithin = 15 * time.Second

var (
	errRunning = errors.New("server is running already")
	ErrStopped = errors.New("server is not running")
	errClosed  = errors.New("ensemble is closed")
)

// A Server is one server, running or not. Its methods are safe for concurrent use.
type Server struct {
	Dir     string
	Port    int
	Secure  int // the port for TLS, or 0
	command func(Installation) *exec.Cmd

	mu     sync.Mutex   // guards the fields below; not held while waiting for the process
	in     Installation // of the next run
	proc   *process     // the latest run; nil before the first
	paused bool
	closed bool
}

// NewServer writes the files of server i of an ensemble to dir, and does not start the server. ports are the ports at
// which this server reaches each server, itself included. loggers is the directory that [WriteLoggers] has filled.
func NewServer(in Installation, c Config, dir, loggers string, i int, ports []Ports) (*Server, error) {
	s := &Server{Dir: dir, Port: ports[i].Client, in: in}
	if c.Secure {
		s.Secure = ports[i].Secure
	}
	s.command = func(in Installation) *exec.Cmd { return in.command(c, loggers, filepath.Join(dir, "zoo.cfg")) }
	return s, writeServer(dir, i, c, ports)
}

// Addr returns the address for clients, host:port.
func (s *Server) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
}

// SetHome has the next run use the ZooKeeper in a directory.
func (s *Server) SetHome(home string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, err := s.in.At(home)
	if err == nil {
		s.in = in
	}
	return err
}

// Launch starts the process and does not wait until it serves clients.
func (s *Server) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.proc.running() {
		return errRunning
	}
	// The log covers all runs of the server.
	out, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() // the child has its own
	cmd := s.command(s.in)
	cmd.Stdout, cmd.Stderr = out, out
	proc, err := startProcess(cmd)
	if err != nil {
		return err
	}
	s.proc, s.paused = proc, false
	return nil
}

// current returns the process, or nil if the server is not running.
func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return nil
	}
	return s.proc
}

// Awake reports whether the server is running and not paused.
func (s *Server) Awake() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.running() && !s.paused
}

// Stop ends the server with SIGTERM and waits until it is gone. A server that takes longer than
// 15 seconds is killed, which is an error. Stop does nothing if the server is not running.
func (s *Server) Stop() error {
	proc := s.current()
	if proc == nil {
		return nil
	}
	if err := proc.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process does not see the signal until it continues.
	if err := proc.resume(); err != nil {
		return err
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-proc.done:
		return nil
	case <-timer.C:
	}
	return errors.Join(fmt.Errorf("server did not end within %v of SIGTERM, killed", stopWithin), proc.kill())
}

// Kill ends the server with SIGKILL and waits until it is gone. It does nothing if the server is not running.
func (s *Server) Kill() error {
	proc := s.current()
	if proc == nil {
		return nil
	}
	return proc.kill()
}

// SetPaused stops or continues the process.
func (s *Server) SetPaused(paused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return ErrStopped
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

// Close kills the server. It cannot be started again.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.Kill()
}

func (s *Server) logFile() string { return filepath.Join(s.Dir, "server.log") }

// Log returns the last lines of the server's output, at most size bytes of them.
func (s *Server) Log(size int) string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	if len(text) > size { // without the incomplete first line
		_, text, _ = bytes.Cut(text[len(text)-size:], []byte("\n"))
	}
	return string(text)
}

// probeEvery is how often a server is asked whether it serves.
const probeEvery = 10 * time.Millisecond

// probeWithin bounds one probe, so that a server that accepts the connection and never answers is asked again.
const probeWithin = 2 * time.Second

// WaitServing waits until the server serves clients. It is an error if the process ends or ctx ends first.
func (s *Server) WaitServing(ctx context.Context) error {
	proc := s.current()
	if proc == nil {
		return s.diedError()
	}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		_, err := s.Mode(ctx)
		if err == nil {
			err = s.probeSecure(ctx)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-proc.done:
			return s.diedError()
		case <-tick.C:
		}
	}
}

func (s *Server) Mode(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	return fourletter.Mode(ctx, s.Addr())
}

// probeSecure checks that the port for TLS is open. The server opens it a moment after the other port.
func (s *Server) probeSecure(ctx context.Context) error {
	if s.Secure == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Secure)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// diedError says that the process has ended, and quotes the end of its log.
func (s *Server) diedError() error {
	return fmt.Errorf("%w; the end of its log:\n%s", ErrStopped, s.Log(2<<10))
}

// PortTaken reports whether the server's log says that one of its ports was taken.
func (s *Server) PortTaken() bool {
	return strings.Contains(s.Log(64<<10), "java.net.BindException")
}
