package queue_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A lock that is lost because its node was deleted is a warning, which says which lock it was. A release is no loss.
func TestDeletedIsLogged(t *testing.T) {
	dir := persistentDir(t)
	var log warnings
	q := client(t, dir, log.option())
	released := acquire(t, q)
	tokenOf(t, released) // its node is watched
	release(t, released)
	l := acquire(t, q)
	testserver.Delete(t, l.Path())
	await(t, l.Done(), "the loss")
	zktest.Eventually(t, testserver.Patience, "the warning", func() bool { return len(log.with("node was deleted")) > 0 })
	lines := strings.Join(log.with(dir), "")
	for _, want := range []string{"lock=" + dir + " ", "node=" + l.Path() + " ", "session=0x"} {
		if strings.Count(lines, want) != 1 {
			t.Errorf("%q has not %q once", lines, want)
		}
	}
}

// When a session is lost, one line says how many locks went with it, and names a few.
func TestLocksLostWithSession(t *testing.T) {
	const locks = 12
	dir := persistentDir(t)
	var log warnings
	proxy := testserver.Proxy(t)
	m := testserver.Connect(t, proxy.Addr(), session.WithTimeout(long), log.option())
	var all []*queue.Lease
	for i := range locks {
		all = append(all, acquire(t, on(t, m, fmt.Sprintf("%s/%d", dir, i))))
	}
	release(t, all[0])
	_ = enter(t, on(t, m, dir+"/1"), 2)                                // waits, and so loses nothing
	defer proxy.HoldReply(zktest.Any(zktest.OpNotification)).Release() // that the nodes are gone
	expire(t, proxy, m)
	for _, l := range all[1:] {
		await(t, l.Done(), "the loss")
	}
	zktest.Eventually(t, testserver.Patience, "the line", func() bool { return len(log.with("locks lost")) > 0 })
	lines := log.with("locks lost")
	if len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprintf("holds=%d ", locks-1)) || strings.Count(lines[0], dir) != 5 ||
		!strings.Contains(lines[0], "session=0x") {
		t.Errorf("%q, want one line with %d holds and 5 names", lines, locks-1)
	}
}

// warnings collects the warnings in the log of a manager.
type warnings struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *warnings) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *warnings) option() session.Option {
	return session.WithLogger(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// with returns the lines that contain a text.
func (w *warnings) with(text string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.buf.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A node that somebody has made by hand, and that no session deletes, is named in a warning when a
// contender waits for it: once for each node and manager.
func TestOrphanIsNamed(t *testing.T) {
	dir := persistentDir(t)
	node := dir + "/lock-0000000000"
	byHand := func() {
		if _, err := testserver.Admin(t).Create(node, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	byHand()
	var log warnings
	q := client(t, dir, log.option())
	warned := func(n int) {
		t.Helper()
		zktest.Eventually(t, testserver.Patience, "the warning", func() bool { return len(log.with(node)) == n })
	}
	first := begin(t, q, ask)
	warned(1)
	if line := log.with(node)[0]; !strings.Contains(line, "delete it") || !strings.Contains(line, "lock="+dir+" ") {
		t.Errorf("%q does not say what to do with the node, and which lock it is", line)
	}
	second := begin(t, q, ask)
	testserver.WaitChildren(t, dir, 3)
	first.cancel() // so that the second watches the node
	first.wait(t)
	testserver.WaitChildren(t, dir, 2)
	testserver.Delete(t, node)
	release(t, second.get(t))
	testserver.WaitChildren(t, dir, 0)
	if lines := log.with(node); len(lines) != 1 {
		t.Errorf("%d warnings: %q", len(lines), lines)
	}
	byHand() // another node of the same name
	begin(t, q, ask)
	warned(2)
	testserver.Delete(t, node)
}
