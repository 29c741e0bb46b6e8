package outages

import (
	"fmt"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// slow is a network and disks that answer slowly.
type slow struct {
	name   string
	trip   time.Duration // a round trip
	commit time.Duration // what a server's disk takes for a transaction
}

var slowness = []slow{
	{"network", time.Second, 0},
	{"disks", 2 * oneWay, 1500 * time.Millisecond},
	{"both", time.Second, 1500 * time.Millisecond},
}

// slowTries is how often TestSlow tries with one session, each time in an ensemble of its own.
func slowTries() int { return longtest.Pick(2, 20) }

// crowd is how many sessions share an ensemble in TestSlow. A leader answers a sync only when
// it has committed what any session proposed before. So among many sessions a sync takes
// as long as a write does.
const crowd = 30

// TestSlow has sessions of ten seconds that hold locks live with round trips of a second, with
// disks that take a second and a half for each transaction, and with both, for a minute each.
func TestSlow(t *testing.T) {
	for _, s := range slowness {
		for _, k := range []knowledge{told, learned, unknown} {
			t.Run(fmt.Sprintf("%s/%v/one", s.name, k), func(t *testing.T) {
				var all endured
				for i := range slowTries() {
					all.add(s.endure(t, uint64(i), 1, k))
				}
				s.judge(t, k, all)
			})
			t.Run(fmt.Sprintf("%s/%v/crowd", s.name, k), func(t *testing.T) {
				if s.name != "both" {
					longtest.Only(t)
				}
				s.judge(t, k, s.endure(t, 0, crowd, k))
			})
		}
	}
}

// endure has n sessions of one ensemble live with it for a minute.
func (s slow) endure(t *testing.T, seed uint64, n int, k knowledge) (e endured) {
	t.Helper()
	bubble(t, seed, func(w *world) {
		all := w.hold(n, defaultTimeout, k)
		w.server.Delay(s.trip / 2)
		w.server.SetCommitDelay(s.commit)
		e = endured{n: n, least: leastWithin(all, time.Minute), lost: lost(all)}
	})
	return e
}

// promised reports whether no session may be lost. Nothing is promised for an unknown tick.
//
// Slow disks on a slow network are more than the lease clock can make up for. The ping, the sync and the write of one
// proof follow one another. They take 1 s, 1 s to 2.5 s in a crowd, and 2.5 s, and half a tick and a fiftieth of it lies
// between the first two. A ping is answered 1 s after it was sent, which is less than that, so the sync follows a later
// answer. A proof is up to 8.5 s old when it comes, the next one comes two seconds later, and a lease is nine seconds.
func (s slow) promised(k knowledge) bool { return k != unknown && s.name != "both" }

func (s slow) judge(t *testing.T, k knowledge, e endured) {
	t.Helper()
	t.Logf("lost %d of %d; the least that remained was %v", e.lost, e.n, e.least)
	if e.lost > 0 && s.promised(k) {
		t.Errorf("lost %d of %d sessions, want none", e.lost, e.n)
	}
}

// leastWithin returns the least that any session had left within some time.
func leastWithin(all []*holder, d time.Duration) time.Duration {
	lowest := least(all)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		lowest = min(lowest, least(all))
	}
	return lowest
}
