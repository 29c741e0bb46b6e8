//go:build unix

package size

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// files takes all file descriptors that this process may open.
type files struct {
	mu    sync.Mutex
	taken []*os.File // nil after free
	over  bool
}

// newFiles lowers the limit first, so that few are left.
func newFiles(t *testing.T) *files {
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	low := was
	low.Cur = min(low.Cur, 200)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	f := new(files)
	t.Cleanup(func() {
		f.free()
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
	})
	return f
}

func (f *files) take() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.over {
		one, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		f.taken = append(f.taken, one)
	}
}

func (f *files) free() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	for _, one := range f.taken {
		_ = one.Close()
	}
	f.taken = nil
}

// greedy is a connection whose file descriptor is taken as soon as it is free.
type greedy struct {
	net.Conn
	*files
}

func (g greedy) Close() error {
	err := g.Conn.Close()
	g.take()
	return err
}

// reason looks in a log for the reason why there is no connection.
type reason struct{ seen atomic.Bool }

func (r *reason) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("no connection to zookeeper")) && bytes.Contains(line, []byte("no file descriptor is left")) {
		r.seen.Store(true)
	}
	return len(line), nil
}

// The connection breaks while no file descriptor is left. The log says why there is no other, and when there are files
// again, the session goes on with its lock.
func TestExhaustedFiles(t *testing.T) {
	longtest.InCI(t)
	e, f, log := server(t), newFiles(t), new(reason)
	var first atomic.Pointer[greedy]
	u := newUser(t, e.Addr(0), session.WithTimeout(40*time.Second), session.WithLogger(slog.New(slog.NewTextHandler(log, nil))),
		session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			g := &greedy{c, f}
			first.CompareAndSwap(nil, g) // a later one asks for the tick
			return g, nil
		}))
	u.during("no file is left", func(context.Context) {
		must(t, first.Load().Close())
		zktest.Eventually(t, patience, "a line that names the reason", log.seen.Load)
		if state := u.State(); state != session.Suspended {
			t.Errorf("state %v", state)
		}
		f.free()
		free := time.Now()
		zktest.Eventually(t, patience, "a connection", func() bool { return u.State() == session.Connected })
		t.Logf("connected %v after there are files", time.Since(free).Round(time.Millisecond))
	})
}

// The garbage collector runs all the time, since the heap is over the limit (GOMEMLIMIT). Locks go on, and heartbeats leave in time.
func TestMemoryLimit(t *testing.T) {
	longtest.InCI(t)
	u := newUser(t, server(t).ConnectString())
	heap := make([]byte, 64<<20)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(len(heap) / 2)))
	u.during("locks beside the garbage collector", func(ctx context.Context) {
		each(t, longtest.Pick(100, 1000), func(i int) error {
			for range 10 {
				if err := take(ctx, u.Manager, fmt.Sprint("/pressed/", i%50)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	runtime.KeepAlive(heap)
}
