package semaphore_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// writes matches requests that need a quorum.
func writes(dir string) zktest.Match {
	in := under(dir)
	return func(r zktest.Request) bool {
		switch r.Op {
		case zktest.OpCreate, zktest.OpCreate2, zktest.OpCreateContainer, zktest.OpCreateTTL,
			zktest.OpDelete, zktest.OpSetData, zktest.OpMulti, zktest.OpSetACL:
			return in(r)
		}
		return false
	}
}

// An acquisition and its release take two writes, for one lease or several, with or without a wait. The first acquisition
// takes one more, which sets the limit. In Curator's layout they take four.
func TestWrites(t *testing.T) {
	ctx := patient(t)
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			dir := testserver.Path(t)
			persistent(t, dir+"/locks", "")
			persistent(t, dir+"/leases", "")
			proxy := testserver.Proxy(t)
			s := newSem(t, behind(t, proxy), dir, 3, layout.opts...)
			want, all := 2, 3
			if layout.opts != nil {
				want, all = 4, 1
			} else {
				release(t, take(t, s, 1))
				if n := proxy.Count(writes(dir)); n != 3 {
					t.Errorf("the first: %d writes, want 3", n)
				}
			}
			once := func(what string, get func() *queue.Lease) {
				t.Helper()
				proxy.ResetRequests()
				l := get()
				if _, err := l.Token(ctx); err != nil {
					t.Error(err)
				}
				release(t, l)
				if n := proxy.Count(writes(dir)); n != want {
					t.Errorf("%s: %d writes, want %d", what, n, want)
				}
			}
			once("one", func() *queue.Lease { return take(t, s, 1) })
			once("several", func() *queue.Lease { return take(t, s, all) })
			other := newSem(t, connect(t), dir, 3, layout.opts...)
			held := []*queue.Lease{take(t, other, 1), take(t, other, 1), take(t, other, 1)}
			once("waited for", func() *queue.Lease {
				c := enterAt(t, s, 1, dir+layout.queue)
				release(t, held[0])
				return c.get(t)
			})
			release(t, held[1:]...)
		})
	}
}
