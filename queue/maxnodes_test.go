package queue_test

import (
	"path"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A session that has as many nodes as it may have gets no more. It has room again when a node goes, in
// whatever way.
func TestMaxNodes(t *testing.T) {
	deleted := func(t *testing.T, l *queue.Lease) {
		testserver.Delete(t, l.Path())
		await(t, l.Done(), "the holder to be told")
	}
	for _, c := range []struct {
		what    string
		adopted bool // the reply to the create is lost
		end     func(*testing.T, *queue.Lease)
	}{
		{"released", false, func(t *testing.T, l *queue.Lease) { release(t, l) }},
		{"deleted by an operator", false, deleted},
		{"adopted and deleted by an operator", true, deleted},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, _ := proxied(t, dir, session.WithNodeLimits(1, 1<<20))
			if c.adopted {
				proxy.CutAfterCommit(ofContenders(dir, zktest.OpCreate))
			}
			l := acquire(t, q)
			before := proxy.Count(ofContenders(dir, zktest.OpCreate))
			_, err := q.Acquire(patient(t), ask)
			mustBe(t, err, session.ErrTooManyNodes)
			if n := proxy.Count(ofContenders(dir, zktest.OpCreate)); n != before {
				t.Errorf("%d creates were sent, %d before", n, before)
			}
			c.end(t, l)
			zktest.Eventually(t, testserver.Patience, "room for another", func() bool {
				l, err = q.Acquire(patient(t), ask)
				return err == nil
			})
			release(t, l)
		})
	}
}

// A waiter whose node an operator deletes takes a new place, even in a session that may have only
// one node.
func TestMaxNodesWhileWaiting(t *testing.T) {
	dir := persistentDir(t)
	holder, err := client(t, dir).Acquire(patient(t), ask)
	mustBe(t, err, nil)
	q, _, _ := proxied(t, dir, session.WithNodeLimits(1, 1<<20))
	waiting := begin(t, q, ask)
	for range 3 {
		testserver.WaitChildren(t, dir, 2)
		for _, name := range testserver.Children(t, dir) {
			if p := path.Join(dir, name); p != holder.Path() {
				testserver.Delete(t, p)
			}
		}
	}
	testserver.WaitChildren(t, dir, 2)
	release(t, holder)
	release(t, waiting.get(t))
}
