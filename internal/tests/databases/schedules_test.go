package databases

import "testing"

// Tokens of the schedules: A holds the lock first, and B after it.
const a, b = 41, 42

// A has read and is paused. Its lock expires, and B gets the lock. Neither order of their writes loses one.
func TestLostUpdate(t *testing.T) {
	worlds(t, func(w *world) {
		earlier := w.holder(a)
		must(w.T, earlier.claim())
		_, err := earlier.read() // too early to be of use later
		must(w.T, err)
		must(w.T, earlier.tx.Commit())

		w.run("B first", func(w *world) {
			second := w.holder(b)
			must(w.T, second.claim())
			first := w.deduct(a)
			w.waits()
			second.take(balance)
			w.stale((<-first).err)
			w.want(balance - 1)
		})
		w.run("A first", func(w *world) {
			w.open(balance)
			w.took(w.deduct(a), balance-1)
			w.took(w.deduct(b), balance-2)
			w.stale((<-w.deduct(a)).err)
			w.want(balance - 2)
		})
	})
}

// Of two claims, the later one waits for the end of the other's transaction, whichever token is higher, and also if the
// resource had no row before.
func TestTwoClaims(t *testing.T) {
	worlds(t, func(w *world) {
		for _, known := range []bool{false, true} {
			open := func(w *world) {
				w.open(balance)
				if known {
					earlier := w.holder(a - 1)
					must(w.T, earlier.claim())
					must(w.T, earlier.tx.Commit())
				}
			}
			name := map[bool]string{false: " of a new resource", true: ""}[known]
			w.run("the higher claim"+name+" waits", func(w *world) {
				open(w)
				first := w.holder(a)
				must(w.T, first.claim())
				second := w.deduct(b)
				w.waits()
				first.take(balance)
				w.took(second, balance-2)
				w.want(balance - 2)
			})
			w.run("the lower claim"+name+" waits", func(w *world) {
				open(w)
				second := w.holder(b)
				must(w.T, second.claim())
				first := w.deduct(a)
				w.waits()
				second.take(balance)
				w.stale((<-first).err)
				w.want(balance - 1)
			})
			w.run("a claim"+name+" that is rolled back", func(w *world) {
				open(w)
				second := w.holder(b)
				must(w.T, second.claim())
				must(w.T, second.write(0))
				first := w.deduct(a)
				w.waits()
				must(w.T, second.tx.Rollback())
				w.took(first, balance-1)
				w.want(balance - 1)
			})
		}
	})
}

// A holder claims as often as it likes, in one transaction and in the next, until a higher token has claimed.
func TestOwnSecondClaim(t *testing.T) {
	worlds(t, func(w *world) {
		h := w.holder(a)
		must(w.T, h.claim())
		must(w.T, h.claim())
		h.take(balance)
		h.begin()
		must(w.T, h.claim())
		h.take(balance - 1)

		next := w.holder(b)
		must(w.T, next.claim())
		w.stale((&holder{w, next.ctx, a, next.tx}).claim()) // the claim of the same transaction counts
		must(w.T, next.tx.Rollback())
		w.took(w.deduct(a), balance-3)
		w.took(w.deduct(b), balance-4)
		w.stale((<-w.deduct(a)).err)
		w.want(balance - 4)
	})
}
