package locktest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

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

// walk calls f for each request of what f does, in a world of its own each time. The fault meets request n of the
// process that f arms it for. f returns after the fault has struck, or never will. The walk ends with the first call
// of f in which it has not.
func walk(t *testing.T, s Subject, points []point, f func(*world, func(*process) *zktest.Fault)) {
	t.Helper()
	for _, p := range points {
		for n := int64(1); ; n++ {
			if n > longestWalk {
				t.Fatalf("%s: more than %d requests", p.name, longestWalk)
			}
			struck, step := false, ""
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, s)
				var fault *zktest.Fault
				f(w, func(by *process) *zktest.Fault {
					fault = p.arm(w.server, nth(n, by.session(), &step))
					return fault
				})
				struck = hit(fault)
			})
			if t.Failed() {
				t.Fatalf("%s: at request %d (%s)", p.name, n, step)
			}
			if !struck {
				break
			}
		}
	}
}

// hit reports whether a fault has struck.
func hit(f *zktest.Fault) bool {
	select {
	case <-f.Hit():
		return true
	default:
		return false
	}
}

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
