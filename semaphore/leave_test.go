package semaphore_test

import (
	"fmt"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// people are clients behind one proxy, with a session each.
type people struct {
	proxy    *zktest.Proxy
	managers []*session.Manager
}

func gather(tb testing.TB, n int) *people {
	p := &people{proxy: testserver.Proxy(tb)}
	for range n {
		p.managers = append(p.managers, behind(tb, p.proxy))
	}
	return p
}

// holder is a client with a lease.
type holder struct {
	m     *session.Manager
	lease *queue.Lease
}

// leave ends a lease.
type leave func(testing.TB, *people, holder)

func leaveByRelease(tb testing.TB, _ *people, h holder)  { release(tb, h.lease) }
func leaveByDeletion(tb testing.TB, _ *people, h holder) { testserver.Delete(tb, h.lease.Path()) }
func leaveByExpiry(tb testing.TB, p *people, h holder)   { expire(tb, p.proxy, h.m) }

// Whichever holder leaves, in whatever order and way, exactly the first waiter gets the lease. No lease is idle while a
// contender waits, and no contender overtakes another.
func TestWhoeverLeaves(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits []int
		ways   []leave // in turn
	}{
		{"release", []int{2, 3}, []leave{leaveByRelease}},
		{"deletion", []int{2, 3}, []leave{leaveByDeletion}},
		{"expiry", []int{2, 3, 4}, []leave{leaveByExpiry}},
		{"release and expiry", []int{2, 3, 4}, []leave{leaveByRelease, leaveByExpiry}},
		{"expiry and release", []int{2, 3, 4}, []leave{leaveByExpiry, leaveByRelease}},
		{"release and deletion", []int{4}, []leave{leaveByRelease, leaveByDeletion}},
	} {
		for _, layout := range layouts {
			for _, limit := range tt.limits {
				// Two holders who leave in different ways are a case of their own, but no other one.
				if limit > longtest.Pick(2, 4) || len(tt.ways) > longtest.Pick(1, 2) {
					continue
				}
				if layout.opts != nil && limit > 3 {
					continue // only one contender waits among the leases, so this adds no case
				}
				t.Run(fmt.Sprintf("%s, %s, %d", layout.name, tt.name, limit), func(t *testing.T) {
					t.Parallel()
					const manyWait = 3
					p := gather(t, limit+manyWait)
					for waiters := 1; waiters <= manyWait; waiters++ {
						each(limit, waiters, func(order []int) {
							s := scene{people: p, limit: limit, order: order, ways: tt.ways}
							s.play(t, layout.queue, layout.opts...)
						})
					}
				})
			}
		}
	}
}

// each calls f with all sequences of the given length of numbers below n.
func each(n, length int, f func([]int)) {
	seq := make([]int, length)
	for {
		f(seq)
		i := 0
		for ; i < length && seq[i] == n-1; i++ {
			seq[i] = 0
		}
		if i == length {
			return
		}
		seq[i]++
	}
}

// scene is a full semaphore with as many waiters as holders that will leave.
type scene struct {
	*people
	limit int
	order []int // which of the present holders leaves, each time
	ways  []leave
}

func (s scene) play(t *testing.T, queued string, opts ...semaphore.Option) {
	t.Helper()
	dir := testserver.Path(t)
	var in []holder
	for _, m := range s.managers[:s.limit] {
		in = append(in, holder{m, take(t, newSem(t, m, dir, s.limit, opts...), 1)})
	}
	var calls []*call
	for i := range s.order {
		m := s.managers[s.limit+i]
		calls = append(calls, enterAt(t, newSem(t, m, dir, s.limit, opts...), 1, dir+queued))
	}
	for i, who := range s.order {
		for _, c := range calls[i:] {
			c.waits(t, fmt.Sprintf("all leases are held, after %v", s.order[:i]))
		}
		s.ways[i%len(s.ways)](t, s.people, in[who])
		next := holder{s.managers[s.limit+i], calls[i].get(t)}
		in = append(append(in[:who:who], in[who+1:]...), next)
	}
	for _, h := range in {
		must(t, h.lease.Err())
		release(t, h.lease)
	}
}
