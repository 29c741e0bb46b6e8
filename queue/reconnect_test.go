package queue_test

import (
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The wake-up is lost. The waiter finds out on its own that its turn has come, well before its
// regular check.
func TestWakeUpLost(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, p *zktest.Proxy, leave func())
	}{
		{"the event is held back, then the connection breaks", func(t *testing.T, p *zktest.Proxy, leave func()) {
			hold := p.HoldReply(zktest.Any(zktest.OpNotification))
			leave()
			await(t, hold.Hit(), "the event")
			p.Disconnect()
		}},
		{"the connection breaks in place of the event", func(t *testing.T, p *zktest.Proxy, leave func()) {
			cut := p.CutAfterCommit(zktest.Any(zktest.OpNotification))
			leave()
			await(t, cut.Hit(), "the event")
		}},
		{"the predecessor leaves while there is no connection", func(_ *testing.T, p *zktest.Proxy, leave func()) {
			p.Refuse(true)
			p.Disconnect()
			leave()
			p.Heal()
		}},
		{"the connection breaks, and is back, before", func(t *testing.T, p *zktest.Proxy, leave func()) {
			p.ResetRequests()
			p.Disconnect()
			zktest.Eventually(t, testserver.Patience, "the handshake", func() bool {
				return p.Count(zktest.Any(zktest.OpConnect)) > 0
			})
			leave()
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			holder := acquire(t, client(t, dir))
			watching := make(chan struct{}, 100)
			q, proxy, m := proxied(t, dir, session.WithTimeout(time.Minute), watchHook(watching))
			before := testserver.Session(t, m).ID()
			w := enter(t, q, 2)
			await(t, watching, "the waiter to watch")
			c.lose(t, proxy, func() {
				w.waits(t, "the first holds")
				release(t, holder)
			})
			select {
			case <-w.done:
			case <-time.After(testserver.Patience): // after a session timeout, it would look anyway
				t.Fatal("the wake-up was lost")
			}
			l := w.get(t)
			onlyChild(t, l)
			if testserver.Session(t, m).ID() != before {
				t.Error("not in the same session")
			}
			release(t, l)
		})
	}
}

// A waiter that was disconnected while nothing happened keeps its place, with the same node.
func TestWaiterReconnects(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	watching := make(chan struct{}, 100)
	q, proxy, _ := proxied(t, dir, watchHook(watching))
	w := enter(t, q, 2)
	node := newest(t, dir)
	for range 3 {
		await(t, watching, "the waiter to watch")
		proxy.Disconnect()
	}
	await(t, watching, "the waiter to watch again")
	if got := newest(t, dir); got != node || len(testserver.Children(t, dir)) != 2 {
		t.Errorf("the waiter's node was %s and is %s", node, got)
	}
	w.waits(t, "the first holds")
	release(t, holder)
	release(t, w.get(t))
}

// An event on another connection than the watch was set on proves nothing about our own node. Both the
// node and its predecessor's are deleted while there is no connection.
func TestEverythingGoneWhileDisconnected(t *testing.T) {
	dir := persistentDir(t)
	holder := acquire(t, client(t, dir))
	watching := make(chan struct{}, 100)
	q, proxy, _ := proxied(t, dir, watchHook(watching))
	w := enter(t, q, 2)
	await(t, watching, "the waiter to watch")
	own := newest(t, dir)
	behind := enter(t, client(t, dir), 3)
	proxy.Refuse(true)
	proxy.Disconnect()
	testserver.Delete(t, dir, own)
	release(t, holder)
	b := behind.get(t)
	proxy.Heal()
	testserver.WaitChildren(t, dir, 2)
	w.waits(t, "the one behind it holds")
	release(t, b)
	l := w.get(t)
	onlyChild(t, l)
	release(t, l)
}
