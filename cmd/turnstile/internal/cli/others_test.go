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

	"github.com/turnstile-go/turnstile/election"
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

// A semaphore of kazoo is shown with its holders and its waiters. Its leases have names of their own, and its waiters are in a
// directory beside it, which is no lock of its own.
func TestKazooSemaphore(t *testing.T) {
	if err := exec.Command(python, "-c", "import kazoo").Run(); err != nil {
		testserver.Missing(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), programTime)
	defer cancel()
	w := newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t))
	w.plant(t, "before", "not a number")
	holder := startOther(t, exec.CommandContext(ctx, python, "testdata/kazoo_semaphore.py", w.addr, w.top+"/pool", w.top+"/before"))
	w.says(t, "show", w.top+"/pool", "semaphore of kazoo, 2 of 2 leases taken, 2 holders, 1 waiter\n")
	got := w.call(t.Context(), "show", "--wide", w.top+"/pool")
	got.want(t, 0)
	var who []string
	for _, line := range strings.Split(got.stdout, "\n")[3:6] {
		cells := strings.Fields(line)
		who = append(who, strings.Join([]string{cells[1], cells[2], cells[5], cells[7]}, " "))
	}
	// The node at the gate has the identifier as Python prints bytes.
	if want := "holds 1 worker-7 kazoo, holds 1 worker-8 kazoo, waits 1 b'worker-9' kazoo"; strings.Join(who, ", ") != want {
		t.Errorf("got %q, want %q:\n%s", who, want, got.stdout)
	}
	w.says(t, "show", w.top+"/before", "semaphore of kazoo, 1 of an unknown number of leases taken, 1 holder, 0 waiters\n")
	got = w.call(t.Context(), "ls", w.top)
	got.want(t, 0)
	for _, text := range []string{"/pool    semaphore 2/2 (kazoo)  worker-7 and 1 more  ", "/before  semaphore 1 (kazoo)    worker-7  "} {
		if !strings.Contains(got.stdout, text) {
			t.Errorf("ls lacks %q:\n%s", text, got.stdout)
		}
	}
	if strings.Contains(got.stdout, "__lock__") || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("ls has other locks:\n%s", got.stdout)
	}
	w.says(t, "limit", w.top+"/pool", "2 of 2 leases taken")
	w.call(t.Context(), "resize", w.top+"/pool", "3").want(t, codeFailed, "is a semaphore of kazoo")
	w.call(t.Context(), "break", w.top+"/before").want(t, codeFailed, "worker-7 uses kazoo, whose locks do not listen")
	w.says(t, "break", "--force", "--yes", w.top+"/before", "Its release reports no error.")
	w.says(t, "show", w.top+"/before", "nobody holds it, nobody waits")
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

// An election is told from a mutex, which is held for a moment.
func TestElection(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		for dir, opts := range map[string][]election.Option{"selector": nil, "latch": {election.WithLeaderLatch()}} {
			p := w.top + "/" + dir
			e, err := election.New(w.manager(t), p, append(opts, election.WithID("web-3"))...)
			if err != nil {
				t.Fatal(err)
			}
			over := errors.New("over")
			err = e.Run(t.Context(), func(context.Context) error {
				w.says(t, "show", "--wide", p, p+": election, 1 holder, 0 waiters\n")
				w.says(t, "show", "--wide", p, "  web-3  ")
				w.says(t, "show", "--wide", p, "  turnstile  ")
				w.says(t, "ls", w.top, p+"  election  web-3  ")
				return over
			})
			if !errors.Is(err, over) {
				t.Fatal(err)
			}
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
