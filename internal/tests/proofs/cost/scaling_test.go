package cost

import (
	"fmt"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"time"
)

// sizes are the numbers of contenders.
func sizes() []int {
	if raceEnabled || !longtest.On() {
		return []int{1, 2, 10, 100}
	}
	return []int{1, 2, 10, 100, 1000}
}

// lock is a lock whose line is measured.
type lock struct {
	name     string
	holders  int // how many may hold it
	takers   func(w *world, n int) []taker
	sessions func(takers int) int
	promise  func(*testing.T, cost)
	// steady is the number of takers from which on the bytes of each, without listings, do not grow
	// any more. 0: nothing is promised.
	steady int
}

var locks = []lock{
	{"mutex", 1, (*world).mutexes, sessionsFor, mutexPromise, 10},
	{"zk.Lock", 1, (*world).zkLocks, sessionsFor, zkLockShape, 10},
	{fmt.Sprintf("mutex, WithLocalHandover(%d)", handovers), 1, (*world).shared, sharersFor, sharedPromise, 0},
	{fmt.Sprintf("semaphore of %d", permits), permits, (*world).semaphores, sessionsFor, semaphorePromise, 100},
}

// slack is for listings that overtake the create with which they were sent. The scheduler decides
// that, and such a listing is made again.
const slack = 0.05

// again returns the round trips for a taker that lists a second time.
func again(s share) float64 {
	if s.listings > 1 {
		return 1
	}
	return 0
}

func mutexPromise(t *testing.T, c cost) {
	if c.takers == 1 {
		atMost(t, "round trips, alone", c.alone, 2+again(c.share))
		atMost(t, "requests, alone", c.requests, 4+1)
	}
	atMost(t, "round trips for a hand-over", c.handover(), 1.01)
	atMost(t, "requests", c.requests, 7+slack)
	atMost(t, "writes", c.writes, 2)
	atMost(t, "listings", c.listings, 2+slack)
	atMost(t, "watches", c.watches, 3)
}

// zkLockShape checks the measurement by the known cost of the algorithm of zk.Lock.
func zkLockShape(t *testing.T, c cost) {
	atMost(t, "round trips for a hand-over", c.handover(), 2.01)
	if c.handed > 0 && c.handover() < 1.99 {
		t.Errorf("%.3f round trips for a hand-over, which lists anew: less than two", c.handover())
	}
	atMost(t, "requests", c.requests, 5+slack)
	atMost(t, "watches", c.watches, 1)
}

// sharedPromise is that a turn costs as much as one acquisition, however many takers it serves, and
// two round trips: one to enter the queue again, and one to leave.
func sharedPromise(t *testing.T, c cost) {
	each := (c.takers + c.sessions - 1) / c.sessions
	turns := c.sessions * ((each + handovers) / (handovers + 1))
	atMost(t, "requests in all", c.requests*float64(c.takers), (7+slack)*float64(turns)+1)
	atMost(t, "round trips in all", c.drained, 2*float64(turns))
	atMost(t, "watches in all", c.watches*float64(c.handed), 3*float64(c.sessions))
}

// semaphorePromise is for the worst case, in which all holders leave at one instant. A waiter
// watches the last nodes ahead of it, as many as there are permits and half as many again, so
// that few waiters have to list.
func semaphorePromise(t *testing.T, c cost) {
	atMost(t, "round trips for a hand-over", c.handover(), 2.5/permits)
	atMost(t, "requests", c.requests, 17)
	atMost(t, "writes", c.writes, 2)
	atMost(t, "listings", c.listings, 2+slack)
	atMost(t, "watches", c.watches, permits+permits/2+3)
}

func atMost(t *testing.T, what string, got, most float64) {
	t.Helper()
	if got > most {
		t.Errorf("%s: %.3f, want at most %.3f", what, got, most)
	}
}

// TestScaling measures the cost of the protocol as the contenders become more, and checks that it is
// not higher than promised. See the package's comment.
func TestScaling(t *testing.T) {
	var p page
	for _, l := range locks {
		t.Run(l.name, func(t *testing.T) {
			costs := lines(t, l)
			p.lines = append(p.lines, costs)
			for i := 1; i < len(costs); i++ {
				if few, many := costs[i-1], costs[i]; l.steady > 0 && few.takers >= l.steady {
					atMost(t, fmt.Sprintf("bytes each of %d, but for listings", many.takers), many.bytes, 1.1*few.bytes)
				}
			}
		})
	}
	t.Run("readers", func(t *testing.T) { p.crowds = crowds(t) })
	t.Run("sessions", func(t *testing.T) { p.upkeeps = upkeeps(t) })
	if *write {
		p.write(t)
	}
}

// lines measures a lock at all sizes.
func lines(t *testing.T, l lock) (costs []cost) {
	for _, n := range sizes() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(w *world) {
				c := w.line(l.takers(w, n), l.holders, l.sessions(n))
				t.Logf("%+v", c)
				l.promise(t, c)
				costs = append(costs, c)
			})
		})
	}
	return costs
}

// crowds measures readers at all sizes: into a free lock, and behind a writer.
func crowds(t *testing.T) (pairs [][2]crowd) {
	for _, n := range sizes() {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var pair [2]crowd
			bubble(t, func(w *world) { pair[0] = w.crowd(n, false) })
			bubble(t, func(w *world) { pair[1] = w.crowd(n, true) })
			for i, c := range pair {
				t.Logf("%+v", c)
				atMost(t, "round trips until all are in", c.entered, 1+again(c.share)+c.behindLists())
				atMost(t, "requests", c.requests, float64(4+i)+1)
			}
			pairs = append(pairs, pair)
		})
	}
	return pairs
}

// many is how many locks one session holds here, at most.
func many() int { return sizes()[len(sizes())-1] }

// upkeeps measures sessions that do nothing.
func upkeeps(t *testing.T) []upkeep {
	const timeout, long = 10 * time.Second, 40 * time.Second
	run := func(what string, measure func(w *world) upkeep) (u upkeep) {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(w *world) { u = measure(w) })
			t.Logf("%v", u)
		})
		u.what = what
		return u
	}
	plain := run("go-zookeeper's, idle", func(w *world) upkeep { return w.plain(timeout) })
	idle := run("idle", func(w *world) upkeep { return w.holding(0, timeout) })
	one := run("holds 1 lock", func(w *world) upkeep { return w.holding(1, timeout) })
	all := run(fmt.Sprintf("holds %d locks", many()), func(w *world) upkeep { return w.holding(many(), timeout) })
	rare := run(fmt.Sprintf("holds 1 lock, timeout %v", long), func(w *world) upkeep { return w.holding(1, long) })
	waits := run("waits for 1 lock", func(w *world) upkeep { return w.waiting(1, timeout) })
	waitsMore := run("waits for 100 locks", func(w *world) upkeep { return w.waiting(100, timeout) })

	const edge = 2 / float64(watched/time.Minute) // what may fall just inside, or just outside
	beats := func(d time.Duration) float64 { return float64(time.Minute) / float64(d) }
	atMost(t, "writes of an idle session", idle.writes(), 0)
	atMost(t, "requests of one that is idle", idle.perMinute(), 2*plain.perMinute()+edge)
	atMost(t, "writes of one that holds a lock", one.writes(), 5*beats(timeout)+edge)
	// Five rounds of a sync and a write, and pings that the server answers by itself.
	atMost(t, "requests of one that holds a lock", one.perMinute(), plain.perMinute()+(20+5)*beats(timeout)+edge)
	atMost(t, "writes of one that holds many", all.writes(), one.writes()+edge)
	atMost(t, "requests of one that holds many", all.perMinute(), one.perMinute()+edge)
	atMost(t, "writes, with a long timeout", rare.writes(), 5*beats(long)+edge)
	atMost(t, "writes of one that waits for many", waitsMore.writes(), one.writes()+edge)
	atMost(t, "requests of one that waits for one", waits.perMinute(), one.perMinute()+2*beats(timeout)+edge)
	atMost(t, "requests of one that waits for many", waitsMore.perMinute(), one.perMinute()+100*2*beats(timeout)+100*edge)
	return []upkeep{plain, idle, one, all, rare, waits, waitsMore}
}
