package queue_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// The holder is told that another client asks for the lock, at whatever time the request came.
func TestRevoked(t *testing.T) {
	revoke := func(t *testing.T, node string) {
		t.Helper()
		_, err := testserver.Admin(t).Set(node, []byte(queue.RevokeMessage), -1)
		mustBe(t, err, nil)
	}
	for _, c := range []struct {
		what string
		// take gets a lease, and sees to it that somebody asks for it
		take func(t *testing.T, dir string, r queue.Request) *queue.Lease
	}{
		{"at once", func(t *testing.T, dir string, r queue.Request) *queue.Lease {
			l, err := client(t, dir).Acquire(patient(t), r)
			mustBe(t, err, nil)
			revoke(t, l.Path())
			return l
		}},
		{"while disconnected", func(t *testing.T, dir string, r queue.Request) *queue.Lease {
			q, proxy, _ := proxied(t, dir)
			l, err := q.Acquire(patient(t), r)
			mustBe(t, err, nil)
			proxy.Refuse(true)
			proxy.Disconnect()
			revoke(t, l.Path())
			proxy.Refuse(false)
			return l
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			l := c.take(t, dir, ask)
			await(t, l.Revoked(), "the request")
			revoke(t, l.Path()) // again
			mustBe(t, l.Err(), nil)
			release(t, l)
			next := acquire(t, client(t, dir))
			if _, err := next.Token(patient(t)); err != nil {
				t.Error(err)
			}
			select {
			case <-next.Revoked():
				t.Error("the next holder is told")
			default:
			}
			release(t, next)
		})
	}
}

// A request comes while the contender waits, and the connection breaks while the contender reads what has changed. The
// lease knows of the request from its beginning.
func TestRevokedBeforeACutGrant(t *testing.T) {
	dir := persistentDir(t)
	first := acquire(t, client(t, dir))
	q, proxy, _ := proxied(t, dir)
	waits := enter(t, q, 2)
	var node string
	for _, name := range testserver.Children(t, dir) {
		if one := dir + "/" + name; one != first.Path() {
			node = one
		}
	}
	zktest.Eventually(t, testserver.Patience, "the contender to wait", func() bool {
		return proxy.Count(zktest.On(zktest.OpGetData, first.Path())) > 0
	})
	listing := proxy.HoldRequest(ofContenders(dir, zktest.OpGetChildren2))
	_, err := testserver.Admin(t).Set(node, []byte(queue.RevokeMessage), -1)
	mustBe(t, err, nil)
	await(t, listing.Hit(), "the listing after the request")
	release(t, first)
	read := proxy.CutBefore(zktest.On(zktest.OpGetData, node))
	listing.Release()
	await(t, read.Hit(), "the cut")
	l := waits.get(t)
	if !l.IsRevoked() {
		t.Error("the lease does not know of the request")
	}
	release(t, l)
}
