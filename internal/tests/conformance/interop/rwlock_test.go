package interop_test

import (
	"path"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/javaclient"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/zktest"
)

// readersAndWriters returns clients of all languages in turn. Two in five write. The first three
// read.
func readersAndWriters(languages ...string) []client {
	all := make([]client, contenders)
	for i := range all {
		all[i] = client{languages[i%len(languages)], "read"}
		if i%5 > 2 {
			all[i].kind = "write"
		}
	}
	return all
}

func TestReadWriteLock(t *testing.T) {
	longtest.Only(t)
	for name, c := range map[string]contest{
		"go and java":         {clients: readersAndWriters("go", "java"), first: 3, visits: 10},
		"go, java and python": {clients: readersAndWriters("go", "java", "python"), first: 3, visits: 10},
		// As shipped, kazoo's readers wait for writers behind them: see below. So none of
		// these comes between two writers.
		"go and python's readers, as shipped": {clients: []client{
			{"go", "read"}, {"python", "kazoo-read"}, {"go", "write"},
		}, first: 2, visits: 1},
		"python's readers, as shipped, and go": {clients: []client{
			{"go", "write"}, {"python", "kazoo-read"}, {"go", "read"},
		}, first: 1, visits: 1},
		"go and python's writers, as shipped": {clients: inTurn(
			client{"go", "read"}, client{"go", "write"}, client{"python", "kazoo-write"},
		), first: 1, visits: 10},
	} {
		t.Run(name, c.run)
	}
}

// The reader that Curator 5.4 leaves in the place of a writer is behind the writers that
// wait, and they do not wait for it: https://github.com/apache/curator/pull/445. With a later version
// they do.
func TestCuratorDowngradeLetsWriterIn(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	version, err := javaclient.CuratorVersion()
	if err != nil {
		testserver.Missing(t, err)
	}
	letsIn := strings.HasPrefix(version, "5.4.")
	for _, writer := range []client{{"java", "write"}, {"python", "write"}, {"go", "write"}} {
		t.Run(writer.language, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 0)
			downgrader := client{"java", "downgrade"}
			crews := contest{clients: []client{downgrader, writer}}.crews(t, s)
			crews["java"].enter(t, "downgrader", downgrader.kind, 1)
			waitInside(t, s, 1)
			crews[writer.language].enter(t, "writer", writer.kind, 1)
			testserver.WaitChildren(t, s.path, 2)
			s.open(t)
			if letsIn {
				zktest.Eventually(t, testserver.Patience, "a writer beside the reader", func() bool {
					return len(replay(s.events(t), 1).fouls) > 0
				})
			}
			s.create(t, "end", "")
			for _, c := range crews {
				finish(t, c)
			}
			if h := replay(s.events(t), 1); !letsIn && len(h.fouls) > 0 {
				t.Errorf("Curator %s: %+v", version, h)
			}
		})
	}
}

// A reader of ours that was the writer has the writer's place: the waiting writers wait for it.
func TestGoDowngradeKeepsWritersOut(t *testing.T) {
	longtest.Only(t)
	for _, writer := range []client{{"java", "write"}, {"python", "write"}} {
		t.Run(writer.language, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 0)
			s.open(t)
			ctx := queue.WithOwner(t.Context())
			m := connect(t)
			rw, err := rwlock.New(m, s.path)
			must(t, err)
			must(t, rw.Lock(ctx))
			crew := languages[writer.language](t, s)
			crew.enter(t, "writer", writer.kind, 1)
			testserver.WaitChildren(t, s.path, 2)
			must(t, rw.RLock(ctx))
			must(t, s.append("enter", "downgrader", shared))
			must(t, rw.Unlock())
			zktest.Eventually(t, testserver.Patience, "the writer to wait for the reader", func() bool {
				others := watchers(t, path.Join(s.path, readNode(t, s.path)))
				delete(others, testserver.Session(t, m).ID())
				return len(others) == 1
			})
			must(t, s.append("leave", "downgrader", shared))
			must(t, rw.RUnlock())
			finish(t, crew)
			if h := replay(s.events(t), 1); len(h.fouls) > 0 || h.entries != 2 {
				t.Errorf("%+v", h)
			}
		})
	}
}

// readNode returns the name of the one node of a reader.
func readNode(t *testing.T, dir string) string {
	t.Helper()
	for _, name := range testserver.Children(t, dir) {
		if strings.Contains(name, queue.PrefixRead) {
			return name
		}
	}
	t.Fatalf("no reader in %s", dir)
	panic("unreachable")
}
