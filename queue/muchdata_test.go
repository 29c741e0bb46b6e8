package queue_test

import (
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
)

// A contender whose node has as much data as a create can carry renews its place.
func TestRenewalWithMuchData(t *testing.T) {
	const most = 224 << 10
	dir := testserver.Path(t)
	kind := configured(&queue.Kind{Name: "pair", Prefixes: []string{queue.PrefixLease}}, "2",
		func(_ queue.Node, c queue.Config) (p queue.Policy, t queue.Tightening, err error) {
			if string(c.Data) == "2" {
				return queue.Policy{Slack: 1}, t, nil
			}
			t = queue.Tightening{Former: 1, Tightened: c.Changed, Lowered: c.Changed}
			return queue.Policy{Replaces: func(queue.Node) bool { return true }}, t, nil
		})
	q := client(t, dir)
	var held []*queue.Lease
	for range 2 {
		l, err := q.Acquire(patient(t), queue.Request{Kind: kind})
		mustBe(t, err, nil)
		held = append(held, l)
	}
	c := begin(t, q, queue.Request{Kind: kind, Data: make([]byte, most)})
	testserver.WaitChildren(t, dir, 3)
	_, err := testserver.Admin(t).Set(dir, []byte("1"), -1)
	mustBe(t, err, nil)
	for _, l := range held {
		release(t, l)
	}
	release(t, c.get(t))
}
