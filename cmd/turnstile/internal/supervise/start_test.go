//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeLock is a lock that has some time left at each look.
type fakeLock struct {
	err     error
	deleted bool
	left    func() time.Duration
	timeout time.Duration // 0: the one that the limits were made for
}

func (l *fakeLock) Err() error    { return l.err }
func (l *fakeLock) Deleted() bool { return l.deleted }
func (l *fakeLock) Remaining() (left, timeout time.Duration) {
	if l.left == nil {
		return 0, l.timeout
	}
	return l.left(), l.timeout
}
func (l *fakeLock) Done() <-chan struct{}    { return nil }
func (l *fakeLock) Changed() <-chan struct{} { return nil }

var errGoneLock = errors.New("the lock is lost")

// run runs a shell command under a lock.
func run(t *testing.T, lock Lock, script string) (Result, error) {
	t.Helper()
	limits, err := NewLimits(2*time.Second, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	signals := Catch()
	defer signals.Stop()
	return guarded(t, Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ()},
		lock, signals, Options{Limits: limits, Log: slog.New(slog.DiscardHandler)})
}

// noStreams are the streams of a command that has nothing to say.
func noStreams(t *testing.T) []*os.File {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return []*os.File{null, null, null}
}

// guarded is Run with a guard.
func guarded(t *testing.T, c Command, lock Lock, signals *Signals, o Options) (Result, error) {
	t.Helper()
	guard, err := StartGuard(noStreams(t)...)
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	return Run(guard, c, lock, signals, o)
}

// Run does not start a command for a lock that is lost already, or about to be.
func TestRunLost(t *testing.T) {
	for what, lock := range map[string]*fakeLock{
		"deleted": {err: errGoneLock, deleted: true},
		"expired": {err: errGoneLock},
		"ending":  {left: func() time.Duration { return time.Second }},
	} {
		file := filepath.Join(t.TempDir(), "file")
		got, err := run(t, lock, "echo > "+file)
		if err != nil || got.Started || got.Lost == nil {
			t.Errorf("%s: %+v, %v: want a loss before the start", what, got, err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: the command was started", what)
		}
	}
}

// A guard that is too slow does not start the command. It gets another deadline if the lock is
// still held.
func TestRunLateStart(t *testing.T) {
	looks := 0
	lock := &fakeLock{left: func() time.Duration {
		if looks++; looks < 20 {
			return 2*time.Second + time.Microsecond // just above the grace period
		}
		return 9 * time.Second
	}}
	got, err := run(t, lock, "exit 3")
	if err != nil || !got.Started || got.Status != 3 || got.Lost != nil {
		t.Errorf("%+v, %v: want status 3", got, err)
	}
	if looks < 20 {
		t.Errorf("the command was started at look %d, with a deadline that had passed", looks)
	}
}

// An error of execve is the error of Run. A script without a first line "#!" is none.
func TestRunCannotStart(t *testing.T) {
	limits, err := NewLimits(0, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("exit $1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "-nonsense", "/"} {
		signals := Catch()
		got, err := guarded(t, Command{Path: path, Args: []string{path, "7"}}, &fakeLock{left: func() time.Duration { return 9 * time.Second }},
			signals, Options{Limits: limits, Log: slog.New(slog.DiscardHandler)})
		signals.Stop()
		if path == file {
			if err != nil || got.Status != 7 {
				t.Errorf("%+v, %v: want status 7", got, err)
			}
			continue
		}
		if !errors.Is(err, ErrStart) {
			t.Errorf("%s: %+v, %v: want ErrStart", path, got, err)
		}
		if want := fmt.Sprintf("exec %s: ", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not contain %q", path, err, want)
		}
	}
}

// If a server grants a shorter session timeout, the grace period follows, and the command runs on.
func TestRunTimeoutShrinks(t *testing.T) {
	for grace, warned := range map[time.Duration]bool{0: false, 10 * time.Second: true} {
		limits, err := NewLimits(grace, 40*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		lock := &fakeLock{timeout: 4 * time.Second, left: func() time.Duration { return 3 * time.Second }}
		var log strings.Builder
		signals := Catch()
		got, err := guarded(t, Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}}, lock, signals,
			Options{Limits: limits, Log: slog.New(slog.NewTextHandler(&log, nil))})
		signals.Stop()
		if err != nil || got.Status != 3 || got.Lost != nil {
			t.Errorf("grace %v: %+v, %v: want status 3", grace, got, err)
		}
		if strings.Contains(log.String(), "session timeout") != warned {
			t.Errorf("grace %v: log %q", grace, &log)
		}
	}
}

// A guard that has heard nothing for long before the command starts is no reason to start none.
func TestRunGuardWaitedLong(t *testing.T) {
	guard, err := StartGuard(noStreams(t)...)
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	guard.tell(order{Until: 1, Session: &Session{}})
	<-guard.noted
	signals := Catch()
	defer signals.Stop()
	limits, err := NewLimits(0, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	lock := &fakeLock{left: func() time.Duration {
		if looks++; looks > 100 {
			return time.Second // so that the test ends
		}
		return 9 * time.Second
	}}
	got, err := Run(guard, Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}}, lock, signals,
		Options{Limits: limits, Log: slog.New(slog.DiscardHandler)})
	if err != nil || got.Status != 3 || got.Lost != nil {
		t.Errorf("%+v, %v: want status 3", got, err)
	}
}

// A command that was told to end before the guard had started it is not started later.
func TestRunToldBeforeStart(t *testing.T) {
	r := &runner{lock: &fakeLock{left: func() time.Duration { return 9 * time.Second }}, told: clock(), cause: errEnding}
	r.tty = &terminal{}
	r.Log = slog.New(slog.DiscardHandler)
	var err error
	if r.Limits, err = NewLimits(0, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if r.guard, err = StartGuard(noStreams(t)...); err != nil {
		t.Fatal(err)
	}
	defer r.guard.Close()
	r.asked = true
	r.hear(report{Late: true})
	if action, _ := r.step(); action != finish {
		t.Errorf("action %d, want the end", action)
	}
}

// If somebody has asked for the lock before the command starts, it does not start. A signal that means something to the
// command alone waits for the command.
func TestRunAskedBeforeStart(t *testing.T) {
	limits, err := NewLimits(2*time.Second, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGUSR1} {
		asked := make(chan struct{})
		close(asked)
		looks, file := 0, filepath.Join(t.TempDir(), "file")
		lock := &fakeLock{left: func() time.Duration {
			if looks++; looks < 20 {
				return 2*time.Second + time.Microsecond // the guard is too slow to start it
			}
			return 9 * time.Second
		}}
		signals := Catch()
		got, err := guarded(t, Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo > " + file + "; sleep 20"}, Env: os.Environ()},
			lock, signals, Options{Limits: limits, Log: slog.New(slog.DiscardHandler), Asked: asked, AskedSignal: signal})
		signals.Stop()
		if err != nil {
			t.Fatal(err)
		}
		switch signal {
		case 0:
			if got.Started || !errors.Is(got.Lost, ErrAsked) {
				t.Errorf("%+v: want no start", got)
			}
		case syscall.SIGTERM:
			if got.Started || got.Lost != nil || got.Status != 128+int(syscall.SIGTERM) {
				t.Errorf("%+v: want no start, and the status of SIGTERM", got)
			}
		default:
			if !got.Started || got.Lost != nil || got.Status != 128+int(syscall.SIGUSR1) {
				t.Errorf("%+v: want the status of SIGUSR1", got)
			}
			continue
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%v: the command was started", signal)
		}
	}
}
