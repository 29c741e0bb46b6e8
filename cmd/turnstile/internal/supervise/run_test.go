//go:build linux || darwin || freebsd

package supervise

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The guards and starters that Run starts in tests are this binary too.
func TestMain(m *testing.M) {
	if IsHelper() {
		os.Exit(Helper(nil))
	}
	goleak.VerifyTestMain(m)
}

// fakeLock is a lock that has some time left at each look.
type fakeLock struct {
	err     error
	deleted bool
	left    func() time.Duration // nil: none
	timeout func() time.Duration // nil: 10 s
}

func (l *fakeLock) Err() error            { return l.err }
func (l *fakeLock) Deleted() bool         { return l.deleted }
func (l *fakeLock) Done() <-chan struct{} { return nil }
func (l *fakeLock) Remaining() (left, timeout time.Duration) {
	timeout = 10 * time.Second
	if l.timeout != nil {
		timeout = l.timeout()
	}
	if l.left != nil {
		left = l.left()
	}
	return left, timeout
}

var errGoneLock = errors.New("the lock is lost")

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

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

// run is Run with a guard.
func run(t *testing.T, lock Lock, o Options, args ...string) (Result, error) {
	t.Helper()
	guard, err := StartGuard(noStreams(t)...)
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	signals, stop := Catch()
	defer stop()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Path, o.Args, o.Env = args[0], args, os.Environ()
	return Run(guard, lock, signals, o)
}

// Run starts no command for a lock that is lost already or asked for, nor with a grace period that does not fit. It waits until
// the lock is certain for long enough.
func TestRunStarts(t *testing.T) {
	asked := make(chan struct{})
	close(asked)
	looks := 0
	for what, c := range map[string]struct {
		lock    fakeLock
		o       Options
		lost    error
		failure string
		starts  bool
	}{
		"deleted":          {lock: fakeLock{err: errGoneLock, deleted: true}, lost: errGoneLock},
		"expired":          {lock: fakeLock{err: errGoneLock}, lost: errGoneLock},
		"asked for":        {lock: fakeLock{left: always(9 * time.Second)}, o: Options{Asked: asked}, lost: ErrAsked},
		"long grace":       {lock: fakeLock{left: always(9 * time.Second)}, o: Options{Grace: 3 * time.Second}, failure: "needs a session timeout of 12s"},
		"short grace":      {lock: fakeLock{left: always(9 * time.Second)}, o: Options{Grace: time.Millisecond}, failure: "too short"},
		"slow servers":     {lock: fakeLock{timeout: always(time.Second)}, failure: "the servers answer so slowly"},
		"certain at last":  {lock: fakeLock{left: func() time.Duration { looks++; return time.Duration(looks) * 500 * time.Millisecond }}, starts: true},
		"certain at first": {lock: fakeLock{left: always(9 * time.Second)}, starts: true},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			got, err := run(t, &c.lock, c.o, "/bin/sh", "-c", "echo > "+file+"; exit 3")
			if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("error %v, want %q", err, c.failure)
			}
			if !errors.Is(got.Lost, c.lost) || got.Started != c.starts || got.Started && got.Status != 3 {
				t.Errorf("%+v, want the loss %v", got, c.lost)
			}
			if _, err := os.Stat(file); (err == nil) != c.starts {
				t.Errorf("the command has run: %v", err == nil)
			}
		})
	}
}

// A signal that came before the command does not get lost: the command does not start.
func TestSignalBefore(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- unix.SIGTERM
	// There is no guard, so the attempt to start a command would panic.
	got, err := Run(nil, &fakeLock{left: always(9 * time.Second)}, signals, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil || got.Status != 128+int(unix.SIGTERM) || got.Started {
		t.Errorf("%+v, %v: want the status of SIGTERM", got, err)
	}
}

// If a server grants a shorter session timeout, the grace period follows, and the command runs on.
func TestRunTimeoutShrinks(t *testing.T) {
	looks := 0
	lock := &fakeLock{left: always(3500 * time.Millisecond), timeout: func() time.Duration {
		if looks++; looks < 3 {
			return 10 * time.Second
		}
		return 4 * time.Second
	}}
	got, err := run(t, lock, Options{Grace: 2500 * time.Millisecond}, "/bin/sh", "-c", "sleep 0.2; exit 3")
	if err != nil || got.Status != 3 || got.Lost != nil {
		t.Errorf("%+v, %v: want status 3", got, err)
	}
}

// A guard starts no command when the time of the lock is over, or when it was told to kill.
func TestKeeperLate(t *testing.T) {
	for what, k := range map[string]*keeper{"late": {until: clock()}, "killed": {kill: true, until: clock() + time.Hour}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		k.pipe = w
		k.obey(order{Start: &start{Path: []byte("/nonsense")}})
		w.Close()
		text := make([]byte, 100)
		n, _ := r.Read(text)
		r.Close()
		if string(text[:n]) != "{\"Late\":true}\n" || k.tree.id != 0 {
			t.Errorf("%s: %q: want a report that it is late", what, text[:n])
		}
	}
}

// blocked is a standard error that nobody reads.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) { <-b; return len(p), nil }

// A command is ended although nobody reads the warnings about it.
func TestRunWarnsNobody(t *testing.T) {
	b := make(blocked)
	defer close(b)
	got, err := run(t, &fakeLock{left: always(9 * time.Second)}, Options{Log: slog.New(slog.NewTextHandler(b, nil))}, "/bin/sh", "-c", "sleep 1000 & exit 3")
	if err != nil || got.Status != 3 || got.Lost != nil {
		t.Errorf("%+v, %v: want status 3", got, err)
	}
}
