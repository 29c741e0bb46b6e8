package versions_test

import (
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// pair is two locks of which only one can be held. The first is held, and the second waits.
type pair struct {
	name          string
	first, second driver.Lock
}

// pairs returns the pairs below a directory.
func pairs(dir string) []pair {
	at := func(kind string) driver.Lock { return driver.Lock{Kind: kind, Path: dir} }
	several := func(path string, others ...string) driver.Lock {
		return driver.Lock{Kind: "multi", Path: path, Others: others}
	}
	leases := func(kind string, leases, n int) driver.Lock {
		return driver.Lock{Kind: kind, Path: dir, Leases: leases, N: n}
	}
	a, b := dir+"/a", dir+"/b"
	key := "a key/of café"
	keyed := driver.Lock{Kind: "keyed", Path: dir, Key: key}
	return []pair{
		{"mutex", at("mutex"), at("mutex")},
		{"mutex with hand-over that is kept", at("lazy local"), at("lazy local")},
		{"key", keyed, keyed},
		{"key and a mutex", keyed, driver.Lock{Kind: "mutex", Path: directory(keyed)}},
		{"writers", at("write"), at("write")},
		{"writer and reader", at("write"), at("read")},
		{"reader and writer", at("read"), at("write")},
		{"writer and reader that are kept", at("lazy write"), at("lazy read")},
		{"reader and writer that are kept", at("lazy read"), at("lazy write")},
		{"semaphore of 1", leases("semaphore", 1, 1), leases("semaphore", 1, 1)},
		{"semaphore with weights", leases("semaphore", 3, 2), leases("semaphore", 3, 2)},
		{"semaphore in Curator's layout", leases("curator", 1, 1), leases("curator", 1, 1)},
		{"several", several(a, b), several(a, b)},
		{"several and one", several(a, b), driver.Lock{Kind: "mutex", Path: a}},
		{"election", at("election"), at("election")},
		{"latch", at("latch"), at("latch")},
	}
}

// Each version waits for the other, is refused by a try, and comes in its turn.
func TestPairs(t *testing.T) {
	for i, p := range pairs("") {
		t.Run(p.name, func(t *testing.T) {
			bothWays(t, longSession, func(t *testing.T, first, second *process) {
				pairs(first.path)[i].play(t, first, second)
			})
		})
	}
}

// play has the first process hold and the second one wait.
func (p pair) play(t *testing.T, first, second *process) {
	t.Helper()
	tries := p.first.Kind != "election" && p.first.Kind != "latch" // a candidate does not try
	h := first.acquire(t, p.first)
	if tries {
		second.tries(p.second).refused(t, "busy")
		settled(t, p.second, 1)
	}
	next := second.begin(p.second)
	settled(t, p.second, 2)
	if p.shares() {
		h.release(t)
		next.granted(t).release(t)
	} else {
		last := first.begin(p.first)
		settled(t, p.second, 3)
		next.waits(t)
		last.waits(t)
		h.release(t)
		if p.second.Kind == "multi" { // it stands in line from its second entry on, which may come behind the last one
			next, last = firstGranted(t, next, last)
			next.granted(t).release(t)
		} else {
			h = next.granted(t)
			last.waits(t)
			h.release(t)
		}
		last.granted(t).release(t)
	}
	if tries {
		trySoon(t, second, p.second)
		trySoon(t, first, p.first)
	}
	first.acquire(t, p.first).release(t)
	second.acquire(t, p.second).release(t)
}

// firstGranted waits until one of two requests is answered. It returns that one first.
func firstGranted(t *testing.T, a, b *call) (first, then *call) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, a.String()+" or "+b.String()+" gets the lock", func() bool {
		return len(a.done)+len(b.done) > 0
	})
	if len(a.done) > 0 {
		return a, b
	}
	return b, a
}

// shares reports whether the goroutines of the first process share a place in the queue.
func (p pair) shares() bool {
	return strings.HasPrefix(p.first.Kind, "lazy")
}

// trySoon tries until it gets a lock that nobody uses. Another process may still be about to leave.
func trySoon(t *testing.T, p *process, k driver.Lock) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, p.name+" gets the free lock by a try", func() bool {
		try := p.tries(k)
		err := try.err(t)
		if isRefused(err, "busy") {
			return false
		}
		expect.NoError(t, err)
		try.release(t)
		return true
	})
}
