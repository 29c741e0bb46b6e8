//go:build linux || darwin || freebsd

package cli

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/internal/java"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// startOther runs a program until it holds locks, by another library. It releases them when it gets a line.
func startOther(t *testing.T, w *world, cmd *exec.Cmd) (release func()) {
	t.Helper()
	in, err := cmd.StdinPipe()
	expect.NoError(t, err)
	p := startCommand(t, w.addr, cmd)
	p.prints(t, "held\n")
	return func() {
		_, _ = io.WriteString(in, "\n")
		p.prints(t, "released\n")
	}
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
	expect.NoError(t, err)
	w := newWorld(t, testserver.Server(t).Addr(0), testserver.Path(t))
	release := startOther(t, w, program.Command(ctx, w.addr, w.top+"/mutex", w.top+"/semaphore"))
	w.says(t, "show", w.top+"/mutex", "mutex, 1 holder, 0 waiters")
	w.says(t, "show", w.top+"/semaphore", "semaphore in Curator's layout, 1 lease taken; the limit is not on the servers, 1 holder, 0 waiters")
	w.call(t.Context(), "break", "--wait", "2s", w.top+"/mutex").want(t, codeBusy, "It may not listen")
	w.says(t, "break", "--force", "--yes", w.top+"/semaphore", "It uses another library, such as Apache Curator")
	w.says(t, "break", "--force", "--yes", w.top+"/mutex", "Nobody holds "+w.top+"/mutex now")
	release()
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
	release := startOther(t, w, exec.CommandContext(ctx, python, "testdata/kazoo_holder.py", w.addr, w.top+"/mutex"))
	w.says(t, "show", "--wide", w.top+"/mutex", "worker-7  ")
	w.call(t.Context(), "break", w.top+"/mutex").want(t, codeFailed, "worker-7 uses kazoo, which does not listen")
	w.says(t, "break", "--force", "--yes", w.top+"/mutex", "It uses kazoo. Nothing tells it.")
	release()
}

// An election is told from a mutex, which is held for a moment.
func TestElection(t *testing.T) {
	servers(t, func(t *testing.T, w *world) {
		for dir, opts := range map[string][]election.Option{"selector": nil, "latch": {election.WithLeaderLatch()}} {
			p := w.top + "/" + dir
			e, err := election.New(w.manager(t), p, append(opts, election.WithID("web-3"))...)
			expect.NoError(t, err)
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
