package locktest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/zktest"
)

// A point is where a fault meets a request.
type point struct {
	name string
	arm  func(*zktest.Server, zktest.Match) *zktest.Fault
}

var (
	// A server holds the request back, or the answer.
	held = []point{{"request held", (*zktest.Server).HoldRequest}, {"answer held", (*zktest.Server).HoldReply}}
	// The connection breaks before the request reaches the server, or after the server has carried it out.
	cut = []point{{"request cut", (*zktest.Server).CutBefore}, {"answer cut", (*zktest.Server).CutAfterCommit}}
)

// longestWalk bounds the requests of one call and its release.
const longestWalk = 60

// walk calls f for each request of the calls that wait, and for each of the tries, in a world of its own each time. The
// calls of a group send the same requests, so they take turns: each request meets the fault of each point in one call of
// the subject, and in others of the same kind of lock, whose Turn differs, in another call. The fault meets request n of
// the process that f arms it for. f returns after the fault has struck, or never will. The walk ends when each call of
// the group has met no fault.
func walk(t *testing.T, s Subject, busy bool, points []point, f func(*world, call, func(*process) *zktest.Fault)) {
	t.Helper()
	for name, try := range map[string]bool{"a call that waits": false, "a try": true} {
		group := slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool { return c.try != try })
		if len(group) == 0 {
			continue
		}
		if busy {
			name += " while busy"
		}
		for _, p := range points {
			t.Run(name+", "+p.name, func(t *testing.T) {
				for n, missed := 1, 0; missed < len(group); n++ {
					if n > longestWalk {
						t.Fatalf("more than %d requests", longestWalk)
					}
					c, step := group[(n+s.Turn)%len(group)], ""
					missed++
					inWorld(t, s, func(w *world) {
						var fault *zktest.Fault
						f(w, c, func(by *process) *zktest.Fault {
							fault = p.arm(w.Server, nth(int64(n), by.session(), &step))
							return fault
						})
						if hit(fault) {
							missed = 0
						}
					})
					if t.Failed() {
						t.Fatalf("%s, at request %d (%s)", c.name, n, step)
					}
				}
			})
		}
	}
}

// hit reports whether a fault has struck.
func hit(f *zktest.Fault) bool { return expect.Closed(f.Hit()) }

// of matches what a session requests for its locks. What only keeps the session alive does not count, and the numbers of
// those requests are the ones that ZooKeeper's own client uses, from -1 to -8.
func of(session int64) zktest.Match {
	return func(r zktest.Request) bool {
		return r.Session == session && (r.Xid > 0 || r.Xid < -8) && r.Op != zktest.OpClose
	}
}

// nth matches the n-th request of a session from now on.
func nth(n, session int64, which *string) zktest.Match {
	var seen atomic.Int64
	match := of(session)
	return func(r zktest.Request) bool {
		if !match(r) || seen.Add(1) != n {
			return false
		}
		*which = fmt.Sprintf("%v %s", r.Op, r.Path)
		return true
	}
}
