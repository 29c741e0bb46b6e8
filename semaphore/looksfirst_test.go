package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// A busy try makes no node. It goes by the weights ahead and the limit in force.
func TestTryLooksFirst(t *testing.T) {
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	theirs := newSem(t, connect(t), dir, 5)
	s := newSem(t, behind(t, proxy), dir, 5)
	try := func(n int, free bool) {
		t.Helper()
		before := proxy.Count(zktest.On(zktest.OpCreate, dir))
		if free {
			release(t, take(t, s, n))
			return
		}
		busy(t, s, n)
		if proxy.Count(zktest.On(zktest.OpCreate, dir)) != before {
			t.Errorf("a busy try for %d made a node", n)
		}
	}
	try(5, true)
	three := take(t, theirs, 3)
	try(2, true)
	try(3, false)
	waiter := enter(t, theirs, 4)
	try(1, false) // behind one that waits
	must(t, theirs.Resize(patient(t), 8))
	waiter.get(t)
	try(1, true)
	try(2, false)
	must(t, theirs.Resize(patient(t), 7))
	try(1, false)
	release(t, three)
	try(3, true)
	try(4, false)
	release(t, waiter.lease)
}

// A busy try does not set the limit of a directory that has none yet. The next acquisition does.
func TestTrySetsNoLimit(t *testing.T) {
	dir := testserver.Path(t)
	persistent(t, dir, "")
	forge(t, dir, queue.PrefixLease)
	m := connect(t)
	s := newSem(t, m, dir, 1)
	for range 2 {
		busy(t, s, 1)
	}
	if data := dataOf(t, dir); data != "" {
		t.Errorf("a busy try has written %q", data)
	}
	testserver.Delete(t, dir, testserver.Children(t, dir)[0])
	release(t, take(t, s, 1))
	if data := dataOf(t, dir); data == "" {
		t.Error("an acquisition has not set the limit")
	}
}
