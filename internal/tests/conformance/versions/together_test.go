package versions_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/conformance/versions/driver"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// bothWays runs a test with a process of one version in the first part, and with one of the other.
func bothWays(t *testing.T, timeout time.Duration, test func(t *testing.T, first, second *process)) {
	t.Helper()
	longtest.InCI(t)
	orders := [][2]string{{before, present}, {present, before}}
	if !longtest.On() { // one of them, not the same for all tests
		orders = orders[len(t.Name())%2:][:1]
	}
	for _, order := range orders {
		t.Run(order[0]+" first", func(t *testing.T) {
			t.Parallel()
			a := newArena(t, timeout)
			test(t, a.start(t, order[0]), a.start(t, order[1]))
		})
	}
}

// A place that one version keeps goes to the other as soon as that wants it.
func TestKept(t *testing.T) {
	for _, kind := range []string{"lazy", "lazy local", "lazy write", "lazy read"} {
		t.Run(kind, func(t *testing.T) {
			bothWays(t, longSession, func(t *testing.T, first, second *process) {
				k := driver.Lock{Kind: kind, Path: first.path}
				other := k
				if kind == "lazy read" {
					other.Kind = "write"
				}
				keeps(t, first, k)
				trySoon(t, second, other)
				keeps(t, first, k)
				second.acquire(t, other).release(t)
			})
		})
	}
}

// keeps has a process use a lock until it keeps the place.
func keeps(t *testing.T, p *process, k driver.Lock) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, p.name+" keeps a place", func() bool {
		node := p.use(t, k)
		return node == p.use(t, k)
	})
}

// use takes a lock, and gives it up.
func (p *process) use(t *testing.T, k driver.Lock) (node string) {
	t.Helper()
	h := p.acquire(t, k)
	h.release(t)
	return h.Node
}

// Readers of both versions hold the lock together. A writer that goes on as a reader lets in none but readers.
func TestReaders(t *testing.T) {
	bothWays(t, longSession, func(t *testing.T, first, second *process) {
		read, write := driver.Lock{Kind: "read", Path: first.path}, driver.Lock{Kind: "write", Path: first.path}
		owned := driver.Lock{Kind: "owned write", Path: first.path}
		a, b := first.acquire(t, read), second.acquire(t, read)
		second.tries(write).refused(t, "busy")
		a.release(t)
		second.tries(write).refused(t, "busy")
		b.release(t)
		settled(t, read, 0)

		writer := first.acquire(t, owned)
		reader := second.begin(read)
		settled(t, read, 2)
		both := writer.with(driver.Downgrade).granted(t)
		reader.waits(t)
		writer.release(t)
		beside := reader.granted(t)
		second.tries(write).refused(t, "busy")
		both.release(t)
		beside.release(t)
		settled(t, read, 0)

		writer = first.acquire(t, owned)
		next := second.begin(write)
		settled(t, write, 2)
		both = writer.with(driver.Downgrade).granted(t)
		settled(t, write, 3)
		writer.release(t)
		settled(t, write, 2)
		second.tries(read).refused(t, "busy") // it would be behind the writer
		next.waits(t)
		both.release(t)
		next.granted(t).release(t)
	})
}

// The leases of a semaphore are one number for both versions, in either layout, and a large request is not overtaken.
func TestLeases(t *testing.T) {
	bothWays(t, longSession, func(t *testing.T, first, second *process) {
		one := driver.Lock{Kind: "semaphore", Path: first.path + "/ours", Leases: 3}
		two := one
		two.N = 2
		a, b, c := first.acquire(t, one), second.acquire(t, one), first.acquire(t, one)
		second.tries(one).refused(t, "busy")
		settled(t, one, 3)
		large := second.begin(two)
		settled(t, one, 4)
		small := first.begin(one)
		settled(t, one, 5)
		a.release(t)
		settled(t, one, 4)
		first.tries(one).refused(t, "busy")
		large.waits(t)
		small.waits(t)
		b.release(t)
		got := large.granted(t)
		small.waits(t)
		c.release(t)
		d := small.granted(t)
		got.release(t)
		d.release(t)

		curator := driver.Lock{Kind: "curator", Path: first.path + "/curator", Leases: 2}
		a, b = first.acquire(t, curator), second.acquire(t, curator)
		next := first.begin(curator)
		settled(t, curator, 3)
		next.waits(t)
		b.release(t)
		c = next.granted(t)
		second.tries(curator).refused(t, "busy")
		a.release(t)
		c.release(t)

		// The two layouts do not meet.
		h := first.acquire(t, driver.Lock{Kind: "semaphore", Path: first.path + "/layouts", Leases: 2})
		second.begin(driver.Lock{Kind: "curator", Path: first.path + "/layouts", Leases: 2}).refused(t, "conflict")
		h.release(t)
	})
}

// A limit that one version sets holds for the other. docs/upgrade.md asks not to change limits during an upgrade; so
// this test changes one only upwards, or when nobody uses the semaphore.
func TestLimits(t *testing.T) {
	bothWays(t, longSession, func(t *testing.T, first, second *process) {
		k := driver.Lock{Kind: "semaphore", Path: first.path, Leases: 2}
		resize := func(p *process, n int) {
			t.Helper()
			k := k
			k.N = n
			p.ask(t, driver.Request{Verb: "resize", Lock: k})
			for _, p := range []*process{first, second} {
				if got := p.ask(t, driver.Request{Verb: "limit", Lock: k}); got != strconv.Itoa(n) {
					t.Fatalf("%s reads the limit %s, want %d", p.name, got, n)
				}
			}
		}
		a, b := first.acquire(t, k), second.acquire(t, k)
		third, fourth := second.begin(k), first.begin(k)
		settled(t, k, 4)
		third.waits(t)
		fourth.waits(t)
		resize(first, 4)
		c, d := third.granted(t), fourth.granted(t)
		second.tries(k).refused(t, "busy")
		for _, h := range []*call{a, b, c, d} {
			h.release(t)
		}
		settled(t, k, 0)
		resize(first, 1)
		a = second.acquire(t, k)
		first.tries(k).refused(t, "busy")
		a.release(t)
		settled(t, k, 0)
		resize(second, 2)
		a, b = first.acquire(t, k), second.acquire(t, k)
		a.release(t)
		b.release(t)
	})
}

// Each version asks holders of the other to give a lock up.
func TestRevoke(t *testing.T) {
	bothWays(t, longSession, func(t *testing.T, first, second *process) {
		k := driver.Lock{Kind: "mutex", Path: first.path}
		h, next := first.acquire(t, k), second.begin(k)
		settled(t, k, 2)
		for _, other := range []*process{second, first} {
			asked := h.with(driver.Revoked)
			asked.waits(t)
			other.ask(t, driver.Request{Verb: "revoke", Node: h.Node})
			asked.granted(t)
			h.release(t)
			if other == second {
				h = next.granted(t)
			}
		}
	})
}

// Both versions see the leader, whichever it is.
func TestLeader(t *testing.T) {
	for _, kind := range []string{"election", "latch"} {
		t.Run(kind, func(t *testing.T) {
			bothWays(t, longSession, func(t *testing.T, first, second *process) {
				candidate := func(p *process) driver.Lock { return driver.Lock{Kind: kind, Path: p.path, Key: "id of " + p.name} }
				leads := func(p *process) {
					t.Helper()
					for _, observer := range []*process{first, second} {
						if got := observer.ask(t, driver.Request{Verb: "leader", Lock: candidate(observer)}); got != "id of "+p.name {
							t.Fatalf("to %s the leader is %q, want %s", observer.name, got, p.name)
						}
					}
				}
				h := first.acquire(t, candidate(first))
				leads(first)
				next := second.begin(candidate(second))
				settled(t, candidate(first), 2)
				leads(first)
				h.release(t)
				h = next.granted(t)
				leads(second)
				h.release(t)
				for _, observer := range []*process{first, second} {
					observer.send(driver.Request{Verb: "leader", Lock: candidate(observer)}).refused(t, "no leader")
				}
			})
		})
	}
}

// A tick that one version has run is not run by the other. One that has failed is, as often as it may be.
func TestJobs(t *testing.T) {
	bothWays(t, longSession, func(t *testing.T, first, second *process) {
		tick := func(n int64) driver.Lock { return driver.Lock{Kind: "job", Path: first.path, Tick: n} }
		once := func(n int64) driver.Lock { return driver.Lock{Kind: "job once", Path: first.path, Tick: n} }
		last := func(want string) {
			t.Helper()
			for _, p := range []*process{first, second} {
				if got := p.ask(t, driver.Request{Verb: "last", Lock: tick(1)}); got != want {
					t.Fatalf("%s reads %q, want %q", p.name, got, want)
				}
			}
		}
		h := first.acquire(t, tick(100))
		last("tick 100, tries 1, done false")
		next := second.begin(tick(100))
		settled(t, tick(100), 2)
		second.tries(tick(100)).refused(t, "not run")
		next.waits(t)
		h.release(t)
		next.refused(t, "not run")
		last("tick 100, tries 1, done true")
		second.begin(tick(99)).refused(t, "not run")
		settled(t, tick(101), 0)

		h = first.acquire(t, tick(101))
		next = second.begin(tick(101))
		settled(t, tick(101), 2)
		h.with(driver.Fail).refused(t, "failed")
		next.granted(t).release(t)
		last("tick 101, tries 2, done true")

		h = second.acquire(t, once(102))
		next = first.begin(once(102))
		h.with(driver.Fail).refused(t, "failed")
		next.refused(t, "not run")
		last("tick 102, tries 1, done false")
	})
}

// A waiter gets the lock of a holder of the other version that was killed, or cut off from the servers. By then the one
// that was cut off knows that it has lost the lock.
func TestLoss(t *testing.T) {
	bothWays(t, shortSession, func(t *testing.T, first, second *process) {
		k := func(kind string) driver.Lock {
			return driver.Lock{Kind: kind, Path: first.path + "/" + kind, Leases: 1, Tick: 1}
		}
		kinds := []string{"mutex", "lazy local", "write", "semaphore", "curator", "election", "job"}
		var holders, waiters []*call
		for _, kind := range kinds {
			holders = append(holders, first.acquire(t, k(kind)))
			waiters = append(waiters, second.begin(k(kind)))
		}
		for _, kind := range kinds {
			settled(t, k(kind), 2)
		}
		first.proxy.Blackhole(zktest.ToServer | zktest.ToClient)
		for i, w := range waiters {
			if w.granted(t); holders[i].with(driver.Held).granted(t).Value != "false" {
				t.Errorf("%s holds, and %s still does", w, holders[i])
			}
		}
		first.proxy.Heal()
		for i := range kinds {
			waiters[i] = first.begin(k(kinds[i]))
		}
		for _, kind := range kinds {
			settled(t, k(kind), 2)
		}
		second.kill()
		for _, w := range waiters {
			w.granted(t).release(t)
		}
	})
}
