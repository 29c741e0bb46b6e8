package interop_test

import (
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// These tests show the errors that the page warns of. If one of them fails, the page has to change.

// waitInside waits until n clients are inside together.
func waitInside(t *testing.T, s *site, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "clients inside", func() bool { return len(inside(s.events(t))) == n })
}

func finish(t *testing.T, crews ...crew) {
	t.Helper()
	for _, c := range crews {
		if err := c.finish(); err != nil {
			t.Error(err)
		}
	}
}

// Two clients that do not exclude each other: the second one enters while the first one is inside.
func TestDoNotExclude(t *testing.T) {
	longtest.Only(t)
	for name, clients := range map[string][2]client{
		"kazoo as shipped, then Curator":           {{"python", "kazoo-mutex"}, {"java", "mutex"}},
		"Go, then kazoo without patterns":          {{"go", "mutex"}, {"python", "kazoo-alone"}},
		"kazoo as shipped, then Curator, to write": {{"python", "kazoo-write"}, {"java", "write"}},
		"kazoo's semaphore, then Curator's":        {{"python", "kazoo-semaphore"}, {"java", "semaphore"}},
		"kazoo's classes without extra names":      {{"python", "kazoo-mutex"}, {"python", "mutex"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 1)
			var crews []crew
			for i, cl := range clients {
				c := languages[cl.language](t, s)
				c.enter(t, nameOf(i, cl), cl.kind, 1)
				waitInside(t, s, i+1)
				crews = append(crews, c)
			}
			s.open(t)
			finish(t, crews...)
		})
	}
}

// A reader of kazoo 2.8 that wakes up looks at all writers, also at the writers behind it, which
// wait for it: https://github.com/python-zk/kazoo/issues/649. A reader of a later version gets in.
func TestKazooReaderWaitsForWriterBehindIt(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	s := newSite(t, 0)
	py := newPython(t, s)
	for i, kind := range []string{"kazoo-write", "kazoo-read", "kazoo-write"} {
		py.enter(t, nameOf(i, client{"python", kind}), kind, 1)
		testserver.WaitChildren(t, s.path, i+1)
	}
	s.open(t)
	if !strings.HasPrefix(kazooVersion(t), "2.8.") {
		finish(t, py)
		return
	}
	testserver.WaitChildren(t, s.path, 2)
	last := path.Join(s.path, lastNode(t, s.path))
	zktest.Eventually(t, testserver.Patience, "a watch on the last in the queue", func() bool {
		return len(watchers(t, last)) == 1
	})
}

// watchers returns the sessions that watch a node.
func watchers(t *testing.T, node string) map[int64]bool {
	t.Helper()
	text, err := testserver.Server(t).Word(t.Context(), 0, "wchp")
	must(t, err)
	sessions := make(map[int64]bool)
	for line := range strings.Lines(after(text, node+"\n")) { // sessions, indented, then other paths
		id, err := strconv.ParseInt(strings.TrimSpace(line), 0, 64)
		if err != nil {
			break
		}
		sessions[id] = true
	}
	return sessions
}

func after(text, what string) string {
	_, rest, _ := strings.Cut(text, what)
	return rest
}

func kazooVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(python, "-c", "import kazoo.version; print(kazoo.version.__version__)").Output()
	if err != nil {
		testserver.Missing(t, errNoKazoo)
	}
	return strings.TrimSpace(string(out))
}

// lastNode returns the name with the highest sequence.
func lastNode(t *testing.T, dir string) string {
	t.Helper()
	last := ""
	sequence := func(name string) string { return name[max(0, len(name)-10):] }
	for _, name := range testserver.Children(t, dir) {
		if sequence(name) > sequence(last) {
			last = name
		}
	}
	return last
}

// The classes on the page make a directory again that the server has removed because it was empty.
// Kazoo's own classes fail when they are used again.
func TestDirectoryGone(t *testing.T) {
	longtest.Only(t)
	for kind, ok := range map[string]bool{"mutex": true, "semaphore": true, "kazoo-mutex": false, "kazoo-semaphore": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 1)
			s.open(t)
			py := newPython(t, s)
			py.enter(t, "one", kind, 1)
			waitVisits(t, s, 1)
			removeTree(t, s.path)
			py.enter(t, "one", kind, 1)
			err := py.finish()
			if ok && err != nil {
				t.Error(err)
			}
			if !ok && (err == nil || !strings.Contains(err.Error(), "NoNodeError")) {
				t.Errorf("kazoo is content: %v", err)
			}
		})
	}
}

// waitVisits waits until n visits are over and the queue is empty.
func waitVisits(t *testing.T, s *site, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the end of a visit", func() bool {
		return replay(s.events(t), 1).entries == n && len(inside(s.events(t))) == 0
	})
}

// removeTree removes a directory as soon as it is empty, as the server does with containers.
func removeTree(t *testing.T, dir string) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "an empty directory", func() bool {
		for _, d := range []string{dir + "/locks", dir + "/leases", dir} {
			if err := testserver.Admin(t).Delete(d, -1); err != nil && err != zk.ErrNoNode {
				return false
			}
		}
		return true
	})
}
