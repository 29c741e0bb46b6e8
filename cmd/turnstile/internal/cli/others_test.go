package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/java"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// other is a program that holds locks by another library.
type other struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

// startOther runs a program until it holds its locks. It is killed when the test ends.
func startOther(t *testing.T, cmd *exec.Cmd) *other {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		testserver.Missing(t, err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	o := &other{in, bufio.NewScanner(out)}
	o.says(t, "held")
	return o
}

// says waits for a line of the program. The context of the command bounds that.
func (o *other) says(t *testing.T, line string) {
	t.Helper()
	if !o.out.Scan() || o.out.Text() != line {
		t.Fatalf("the program says %q (%v), want %q", o.out.Text(), o.out.Err(), line)
	}
}

// release makes the program release its locks.
func (o *other) release(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(o.in, "\n"); err != nil {
		t.Fatal(err)
	}
	o.says(t, "released")
}

// programTime bounds the run of another program.
const programTime = time.Minute

// Locks of Curator are shown as such. Its mutex can be taken away, and it notices nothing of that, as break says.
func TestCuratorHolder(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), programTime)
	defer cancel()
	program, err := javaclient.CompileCurator(ctx, "testdata/CuratorHolder.java", t.TempDir())
	if errors.Is(err, java.ErrMissing) {
		testserver.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t))
	holder := startOther(t, program.Command(ctx, w.addr, w.top+"/mutex", w.top+"/semaphore"))
	w.says(t, "show", w.top+"/mutex", "mutex, 1 holder, 0 waiters")
	w.says(t, "show", "--wide", w.top+"/mutex", "  curator  ")
	w.says(t, "show", w.top+"/semaphore", "semaphore in Curator's layout, 1 lease taken; the limit is not on the servers, 1 holder, 0 waiters")
	w.call(t.Context(), "break", "--wait", "200ms", w.top+"/mutex").want(t, codeBusy, "It may not listen")
	w.says(t, "break", "--force", "--yes", w.top+"/semaphore", "It uses Apache Curator")
	w.says(t, "break", "--force", "--yes", w.top+"/mutex", "Nobody holds "+w.top+"/mutex now")
	holder.release(t)
}

// python is that of the packages of Debian, which has kazoo.
const python = "/usr/bin/python3"

// So are locks of kazoo.
func TestKazooHolder(t *testing.T) {
	if err := exec.Command(python, "-c", "import kazoo").Run(); err != nil {
		testserver.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), programTime)
	defer cancel()
	w := newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t))
	holder := startOther(t, exec.CommandContext(ctx, python, "testdata/kazoo_holder.py", w.addr, w.top+"/mutex"))
	w.says(t, "show", "--wide", w.top+"/mutex", "worker-7  ")
	w.call(t.Context(), "break", w.top+"/mutex").want(t, codeFailed, "worker-7 uses kazoo, whose locks do not listen")
	w.says(t, "break", "--force", "--yes", w.top+"/mutex", "Its release reports no error.")
	holder.release(t)
}

// So are locks of go-zookeeper.
func TestZKLockHolder(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		l := zk.NewLock(w.admin, w.top+"/mutex", zk.WorldACL(zk.PermAll))
		if err := l.Lock(); err != nil {
			t.Fatal(err)
		}
		w.says(t, "show", "--wide", w.top+"/mutex", "  zk.Lock  ")
		w.call(t.Context(), "break", w.top+"/mutex").want(t, codeFailed, "which does not listen")
		got := w.call(t.Context(), "break", "--force", "--yes", w.top+"/mutex")
		got.want(t, 0)
		if err := l.Unlock(); !errors.Is(err, zk.ErrNoNode) || !strings.Contains(got.stdout, `Its Unlock fails with "node does not exist"`) {
			t.Errorf("Unlock: %v; break says %s", err, got.stdout)
		}
	})
}

// Break is right about locks of this module: a holder that is connected is told at once.
func TestOwnHolder(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		l := w.acquire(t, "mutex")
		if _, err := l.Token(t.Context()); err != nil { // by now it watches its node
			t.Fatal(err)
		}
		w.says(t, "break", "--force", "--yes", w.top+"/mutex", "its watch tells it within a moment")
		select {
		case <-l.Done():
		case <-time.After(testserver.Patience):
			t.Fatal("the holder was not told")
		}
		if errors.Is(l.Err(), queue.ErrReleased) {
			t.Error("the holder has released the lease")
		}
	})
}
