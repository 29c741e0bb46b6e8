package interop_test

import (
	"path/filepath"
	"testing"

	"github.com/turnstile-go/turnstile/internal/javaclient"
	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// readersAndWriters are clients of all languages in turn, of whom two in five write and the
// first three do not.
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
	for name, c := range map[string]contest{
		"java and python": {clients: readersAndWriters("java", "python"), first: 3, visits: 10},
	} {
		t.Run(name, c.run)
	}
}

// The reader that Curator 5.4 leaves in the place of a writer is behind the writers that
// wait, and they do not wait for it: https://github.com/apache/curator/pull/445.
func TestCuratorDowngradeLetsWriterIn(t *testing.T) {
	t.Parallel()
	if jars, _ := filepath.Glob(filepath.Join(javaclient.Jars, "curator-recipes-5.4.*.jar")); len(jars) == 0 {
		t.Skip("no Curator 5.4")
	}
	for _, writer := range []client{{"java", "write"}, {"python", "write"}} {
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
			zktest.Eventually(t, testserver.Patience, "a writer beside the reader", func() bool {
				return len(replay(s.events(t), 1).fouls) > 0
			})
			s.create(t, "end", "")
			for _, c := range crews {
				finish(t, c)
			}
		})
	}
}
