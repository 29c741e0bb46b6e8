package queue_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// logged collects what a manager logs.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) from(level slog.Level) session.Option {
	return session.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level})))
}

// with returns the lines that contain a text.
func (l *logged) with(text string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A lock that is lost because its node was deleted is a warning, which says which lock it was. A release is no loss.
func TestDeletedIsLogged(t *testing.T) {
	run(t, func(w world) {
		var log logged
		q := w.queue(log.from(slog.LevelWarn))
		released := w.acquire(q)
		w.token(released) // its node is watched
		w.release(released)
		l := w.acquire(q)
		w.token(l)
		w.Remove(l.Path())
		lines := strings.Join(log.with(dir), "")
		for _, want := range []string{"node was deleted", "lock=" + dir + " ", "node=" + l.Path() + " ", "session=0x"} {
			if strings.Count(lines, want) != 1 {
				t.Errorf("%q has not %q once", lines, want)
			}
		}
	})
}

// When a session is lost, one line says how many locks went with it, and names a few.
func TestLocksLostWithSession(t *testing.T) {
	run(t, func(w world) {
		const locks = 12
		var log logged
		m := w.Connect(log.from(slog.LevelWarn))
		var all []*queue.Lease
		var last *queue.Queue
		for i := range locks {
			q, err := queue.New(m, fmt.Sprintf("%s/%d", dir, i))
			w.Must(err)
			all, last = append(all, w.acquire(q)), q
		}
		w.release(all[0])
		w.begin(last, ask)                                             // waits, and so loses nothing
		defer w.HoldReply(zktest.Any(zktest.OpNotification)).Release() // that the nodes are gone
		w.Lose(m)
		for _, l := range all[1:] {
			w.Want("a lock of the lost session", l.Err(), session.ErrLost)
		}
		lines := log.with("locks lost")
		if len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprintf("holds=%d ", locks-1)) || strings.Count(lines[0], dir) != 5 ||
			!strings.Contains(lines[0], "session=0x") {
			t.Errorf("%q, want one line with %d holds and 5 names", lines, locks-1)
		}
	})
}

// A node that somebody has made by hand, and that no session deletes, is named in a warning when a
// contender waits for it: once for each node and manager.
func TestOrphanIsNamed(t *testing.T) {
	run(t, func(w world) {
		const node = dir + "/lock-0000000000"
		w.Make(node, "")
		var log logged
		q := w.queue(log.from(slog.LevelWarn))
		warned := func(n int) {
			t.Helper()
			w.Pass(0)
			if lines := log.with(node); len(lines) != n || !strings.Contains(lines[0], "delete it") || !strings.Contains(lines[0], "lock="+dir+" ") {
				t.Fatalf("%q, want %d warnings that say what to do with the node, and which lock it is", lines, n)
			}
		}
		first := w.begin(q, ask)
		warned(1)
		second := w.begin(q, ask)
		first.Gives() // so that the second watches the node
		w.Remove(node)
		w.release(second.Get())
		warned(1)
		w.Make(node, "") // another node of the same name
		w.begin(q, ask)
		warned(2)
	})
}

// A release that the server refuses returns the error, and the lease is over. The delete is repeated, so the next contender gets
// the lock when the permission is back, in the same session. The log says it once.
func TestNoAuthToRelease(t *testing.T) {
	run(t, func(w world) {
		admin, _, err := zk.Connect([]string{"127.0.0.1:2181"}, time.Minute, zk.WithLogInfo(false),
			zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
				return w.Dialer()(w.Context(), network, addr)
			}))
		w.Must(err)
		defer admin.Close()
		w.Must(expect.Err(admin.SetACL(dir, zk.WorldACL(zk.PermAll&^zk.PermDelete), -1)))
		var log logged
		q := w.queue(log.from(slog.LevelInfo))
		l, s := w.acquire(q), w.Session(q.Manager())
		next := w.begin(w.queue(), ask)
		w.Want("Release", l.Release(w.Context()), zk.ErrNoAuth)
		w.Want("the lease", l.Err(), queue.ErrReleased)
		w.Await(l.Done())
		w.Pass(time.Minute)
		if n := w.Count(w.of(q, zktest.OpDelete)); n < 2 {
			t.Errorf("%d deletes", n)
		}
		next.Waits("the node is still there")
		w.Must(expect.Err(admin.SetACL(dir, zk.WorldACL(zk.PermAll), -1)))
		w.release(next.Get())
		w.Pass(time.Second)
		refused, removed := len(log.with("refuses to remove")), len(log.with("removed a node that it had refused"))
		if refused != 1 || removed != 1 {
			t.Errorf("%d lines about the refusal, %d about its end", refused, removed)
		}
		if w.Session(q.Manager()) != s {
			t.Error("another session")
		}
		w.nodes("in the end", 0)
	})
}
