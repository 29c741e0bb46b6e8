package queue_test

import (
	"fmt"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/zktest"
)

// The connection breaks at the n-th request in the life of a lease. The lock is obtained all the same,
// with one node, and is free afterwards.
func TestCutAtEachStep(t *testing.T) {
	faults := map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore,
		"after":  (*zktest.Proxy).CutAfterCommit,
	}
	for when, arm := range faults {
		for _, contended := range []bool{false, true} {
			for n := 1; n <= 7; n++ {
				t.Run(fmt.Sprintf("%s/contended=%v/%d", when, contended, n), func(t *testing.T) {
					t.Parallel()
					testCutAt(t, contended, 0, func(p *zktest.Proxy, dir string) *zktest.Fault { return arm(p, nth(n, inDir(dir))) })
				})
			}
		}
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren2, zktest.OpGetData, zktest.OpDelete} {
			for _, contended := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/contended=%v/%v", when, contended, op), func(t *testing.T) {
					t.Parallel()
					testCutAt(t, contended, op, func(p *zktest.Proxy, dir string) *zktest.Fault { return arm(p, ofContenders(dir, op)) })
				})
			}
		}
	}
}

// testCutAt takes a lock, with a fault. If the fault is at a kind of request that is always sent, at names it. It is 0 if
// the fault may not come.
func testCutAt(t *testing.T, contended bool, at zktest.Op, arm func(*zktest.Proxy, string) *zktest.Fault) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	other := client(t, dir)
	before := testserver.Session(t, m).ID()
	fault := arm(proxy, dir)
	var l *queue.Lease
	if contended {
		ahead := acquire(t, other)
		c := enter(t, q, 2)
		release(t, ahead)
		l = c.get(t)
	} else {
		l = acquire(t, q)
	}
	if _, err := l.Token(patient(t)); err != nil { // its own watch is set now
		t.Fatal(err)
	}
	testserver.WaitChildren(t, dir, 1)
	onlyChild(t, l)
	release(t, l)
	if at != 0 {
		await(t, fault.Hit(), "the fault")
	}
	fault.Release() // where there were fewer requests than that
	testserver.WaitChildren(t, dir, 0)
	release(t, acquire(t, other))
	if testserver.Session(t, m).ID() != before {
		t.Error("not in the same session")
	}
}
