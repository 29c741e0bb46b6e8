package queue_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// The holder is asked once to release its lease, at whatever time the request came.
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
		{"while held", func(t *testing.T, dir string, r queue.Request) *queue.Lease {
			l, err := client(t, dir).Acquire(patient(t), r)
			mustBe(t, err, nil)
			_, err = l.Token(patient(t)) // the watch is set
			mustBe(t, err, nil)
			_, err = testserver.Admin(t).Set(l.Path(), []byte("something else"), -1)
			mustBe(t, err, nil)
			revoke(t, l.Path())
			return l
		}},
		{"at once", func(t *testing.T, dir string, r queue.Request) *queue.Lease {
			l, err := client(t, dir).Acquire(patient(t), r)
			mustBe(t, err, nil)
			revoke(t, l.Path())
			return l
		}},
		{"while waiting", func(t *testing.T, dir string, r queue.Request) *queue.Lease {
			first := acquire(t, client(t, dir))
			waits := begin(t, client(t, dir), r)
			testserver.WaitChildren(t, dir, 2)
			for _, name := range testserver.Children(t, dir) {
				if node := dir + "/" + name; node != first.Path() {
					revoke(t, node)
				}
			}
			release(t, first)
			return waits.get(t)
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
			asked := make(chan *queue.Lease, 10)
			r := ask
			r.Revoked = func(l *queue.Lease) { asked <- l }
			l := c.take(t, dir, r)
			if got := <-asked; got != l {
				t.Errorf("asked for %s, not %s", got.Path(), l.Path())
			}
			revoke(t, l.Path()) // again
			mustBe(t, l.Err(), nil)
			release(t, l)
			if len(asked) > 0 {
				t.Error("asked more than once")
			}
		})
	}
}
