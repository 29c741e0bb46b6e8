package interop_test

import (
	"path"
	"strings"
	"testing"

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
		"go, java and python": {clients: readersAndWriters("go", "java", "python"), first: 3, visits: 10},
		// As shipped, kazoo's readers wait for writers behind them: https://github.com/python-zk/kazoo/issues/649. So none of
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
			if entries, fouls := replay(s.events(t), 1); len(fouls) > 0 || entries != 2 {
				t.Errorf("%d entries, fouls %q", entries, fouls)
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

func TestMutex(t *testing.T) {
	for name, clients := range map[string][]client{
		"all":                           {{"go", "mutex"}, {"go", "zk.Lock"}, {"java", "mutex"}, {"python", "mutex"}},
		"python, from one to the other": {{"go", "mutex"}, {"python", "kazoo-mutex"}, {"python", "mutex-too"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "all" {
				longtest.InCI(t)
			}
			contest{clients: inTurn(clients...), first: 1, visits: longtest.Pick(5, 20)}.run(t)
		})
	}
}

func TestSemaphore(t *testing.T) {
	longtest.Only(t)
	clients := inTurn(client{"go", "semaphore"}, client{"java", "semaphore"}, client{"python", "semaphore"})
	contest{clients: clients, first: 3, leases: 3, visits: 10}.run(t)
}
