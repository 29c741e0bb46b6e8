package queue_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

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

// The nodes of contenders are no reason to warn.
func TestContendersAreNoOrphans(t *testing.T) {
	dir := persistentDir(t)
	var log warnings
	q := client(t, dir, log.option())
	l := acquire(t, q)
	next := enter(t, q, 2)
	release(t, l)
	release(t, next.get(t))
	if lines := log.with(dir); len(lines) != 0 {
		t.Errorf("warnings: %q", lines)
	}
}
