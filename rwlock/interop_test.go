package rwlock_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// The nodes of Curator and of kazoo count as readers or writers. Other children do not count.
func TestForeignNodes(t *testing.T) {
	for _, tt := range []struct {
		name, prefix string
		letter       string
		blocksRead   bool
		blocksWrite  bool
	}{
		{"Curator's reader", curator(queue.PrefixRead), "R*", false, true},
		{"Curator's writer", curator(queue.PrefixWrite), "W*", true, true},
		{"Curator's reader, unprotected", queue.PrefixRead, "R*", false, true},
		{"Curator's writer, unprotected", queue.PrefixWrite, "W*", true, true},
		{"kazoo's reader", kazoo(queue.PrefixKazooRead), "r*", false, true},
		{"kazoo's writer", kazoo(queue.PrefixKazooLock), "w*", true, true},
		{"no contender", "readme-", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := persistentDir(t)
			rw := newLock(t, connect(t), dir)
			theirs := forge(t, dir, tt.prefix)
			wantPicture(t, rw, tt.letter)
			for _, c := range []struct {
				kind   string
				blocks bool
			}{{"W", tt.blocksWrite}, {"R", tt.blocksRead}} {
				var l *queue.Lease
				ctx := patient(t)
				entered := background(func() (err error) {
					l, err = acquire(rw, c.kind)(ctx)
					return err
				})
				testserver.WaitChildren(t, dir, 2)
				if c.blocks {
					wantPicture(t, rw, tt.letter+" "+c.kind)
					pending(t, c.kind, entered)
					theirs.delete()
				}
				must(t, receive(t, c.kind, entered))
				if c.blocks {
					// As far as this package can tell, their node waits behind this one too.
					theirs = forge(t, dir, tt.prefix)
				}
				must(t, l.Release(patient(t)))
				wantPicture(t, rw, tt.letter)
			}
			theirs.delete()
		})
	}
}
