//go:build linux

package zklock_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/longtest"
	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

// pausedEnv is set in the process that is paused, to the address of the server. pausedDir is set there to the
// path of its locks.
const (
	pausedEnv = "ZKLOCK_TEST_PAUSED"
	pausedDir = "ZKLOCK_TEST_PAUSED_DIR"
)

// pauseTimeout is the session timeout of the paused process.
const pauseTimeout = 2 * time.Second

// A process that was paused for longer than its session lives sees at its first look that its locks are lost.
// That holds for the context of every kind of Do, for that of a lease, for their Done channels, and for contexts
// that are derived from them after the pause.
func TestPausedProcess(t *testing.T) {
	longtest.Only(t)
	cmd := exec.CommandContext(patient(t), os.Args[0], "-test.run=^TestBePaused$", "-test.v")
	cmd.Env = append(os.Environ(), pausedEnv+"="+testserver.Server(t).Addr(0), pausedDir+"="+testserver.Path(t),
		"GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1") // so that the pause hits the right place; the check does not depend on it
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	var status syscall.WaitStatus
	_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	if must(t, err); !status.Stopped() {
		_ = cmd.Wait()
		t.Fatalf("it ended before it stopped:\n%s", &log)
	}
	time.Sleep(pauseTimeout + pauseTimeout/2)
	must(t, cmd.Process.Signal(syscall.SIGCONT))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, &log)
	}
}

// TestBePaused is the process that is paused. It pauses itself.
func TestBePaused(t *testing.T) {
	server, dir := os.Getenv(pausedEnv), os.Getenv(pausedDir)
	if server == "" {
		t.Skip("part of TestPausedProcess")
	}
	type do func(ctx context.Context, f func(context.Context) error) error
	mutex := func(m *session.Manager, path string) do { return newMutex(t, m, path).Do }
	locks := map[string]struct {
		lock func(m *session.Manager, path string) do
		look func(ctx context.Context) error
	}{
		"Do":    {mutex, context.Context.Err},
		"cause": {mutex, context.Cause},
		"done": {mutex, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
				return nil
			}
		}},
		"derived": {mutex, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return ctx.Err()
		}},
		"Multi": {func(m *session.Manager, path string) do {
			multi, err := zklock.Multi(newMutex(t, m, path+"/a"), newMutex(t, m, path+"/b"))
			must(t, err)
			return multi.Do
		}, context.Context.Err},
		"RDo": {func(m *session.Manager, path string) do {
			rw, err := rwlock.New(m, path)
			must(t, err)
			return rw.RDo
		}, context.Context.Err},
		"semaphore": {func(m *session.Manager, path string) do {
			s, err := semaphore.New(m, path, 3)
			must(t, err)
			return s.Do
		}, context.Context.Err},
		"lease": {func(m *session.Manager, path string) do {
			return func(ctx context.Context, f func(context.Context) error) error {
				l, err := newMutex(t, m, path).Acquire(ctx)
				must(t, err)
				ctx, cancel := l.Context(ctx)
				defer cancel()
				_ = f(ctx)
				return l.Err()
			}
		}, context.Context.Err},
	}
	// Each look has a session of its own, so that none profits from another.
	inside := make(map[string]context.Context)
	looked := make(chan struct{})
	ended := make(chan error)
	for name, l := range locks {
		m := testserver.Connect(t, server, session.WithTimeout(pauseTimeout))
		in := make(chan context.Context)
		go func() {
			ended <- l.lock(m, dir+"/"+name)(context.Background(), func(ctx context.Context) error {
				in <- ctx
				<-looked
				return nil
			})
		}()
		inside[name] = <-in
	}
	// The signal goes to this thread, which therefore stops before the call returns. The Go runtime
	// does not know of the call, so that this goroutine is the first to run after the pause.
	runtime.LockOSThread()
	pid, tid := uintptr(syscall.Getpid()), uintptr(syscall.Gettid())
	before := time.Now()
	_, _, failed := syscall.RawSyscall(syscall.SYS_TGKILL, pid, tid, uintptr(syscall.SIGSTOP))
	first := make(map[string]error)
	for name, l := range locks {
		first[name] = l.look(inside[name])
	}
	if took := time.Since(before); failed != 0 || took < pauseTimeout {
		t.Errorf("paused for %v, error %d", took, failed)
	}
	close(looked)
	for name, err := range first {
		if err == nil {
			t.Errorf("%s: the first look says that the lock is held", name)
		}
		wantErr(t, name, context.Cause(inside[name]), session.ErrLost)
	}
	for range locks {
		wantErr(t, "the end", <-ended, session.ErrLost)
	}
}
