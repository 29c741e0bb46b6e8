package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
)

// roomTest is a session whose requests the test answers.
type roomTest struct {
	t *testing.T
	*Session
	bookings     []*booking
	reservations []*reservation
	renews       bool // a request deletes a node: until the answer shows that it is gone, it counts beside the new one
}

func newRoomTest(t *testing.T, nodes, bytes int) *roomTest {
	cfg := newFakeConfig(t)
	cfg.maxNodes, cfg.maxNodeBytes = nodes, bytes
	return &roomTest{t: t, Session: bareSession(t, cfg)}
}

// plenty is more than the paths of any of these tests have.
const plenty = 1 << 20

// size returns the room of n nodes whose paths are a letter and a digit behind a slash.
func (rt *roomTest) size(n int) amount { return amount{n, n * (4 + len("/a0"))} }

func (rt *roomTest) reserved(w wanted) *reservation {
	rt.t.Helper()
	v, err := rt.reserve(rt.t.Context(), w)
	if err != nil {
		rt.t.Fatal(err)
	}
	rt.reservations = append(rt.reservations, v)
	return v
}

// begin reserves in a goroutine.
func (rt *roomTest) begin(ctx context.Context, w wanted) chan error {
	done := make(chan error, 1)
	go func() {
		v, err := rt.reserve(ctx, w)
		if err == nil {
			rt.room.mu.Lock()
			rt.reservations = append(rt.reservations, v)
			rt.room.mu.Unlock()
		}
		done <- err
	}()
	synctest.Wait()
	return done
}

func (rt *roomTest) waits(done chan error) {
	rt.t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		rt.t.Fatalf("it does not wait: %v", err)
	default:
	}
	rt.check()
}

func (rt *roomTest) ends(done chan error, want error) {
	rt.t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			rt.t.Fatalf("%v, want %v", err, want)
		}
	default:
		rt.t.Fatalf("it waits, want %v", want)
	}
	rt.check()
}

// booked sends a create of each path, without an answer.
func (rt *roomTest) booked(v *reservation, deletes []string, paths ...string) *booking {
	rt.t.Helper()
	var sizes []amount
	for _, path := range paths {
		sizes = append(sizes, rt.sizeOfNew(path, false))
	}
	b, err := rt.bookFrom(rt.t.Context(), v, sizes, deletes...)
	if err != nil {
		rt.t.Fatal(err)
	}
	rt.bookings = append(rt.bookings, b)
	rt.renews = rt.renews || b.credit != (amount{})
	return b
}

// made creates nodes.
func (rt *roomTest) made(paths ...string) {
	rt.t.Helper()
	for _, path := range paths {
		rt.booked(nil, nil, path).settle([]string{path}, nil)
	}
	rt.check()
}

func (rt *roomTest) gone(paths ...string) {
	for _, path := range paths {
		rt.room.deleted(rt.room.noted(path))
	}
}

func (rt *roomTest) leave(paths ...string) {
	for _, path := range paths {
		rt.room.depart(rt.room.noted(path))
	}
}

// check compares the account with its parts.
func (rt *roomTest) check() {
	rt.t.Helper()
	r := &rt.room
	r.mu.Lock()
	defer r.mu.Unlock()
	var used, leaving amount
	seen, unknown := make(map[*share]bool), 0
	add := func(st *share) {
		if st == nil || st.state == over || seen[st] {
			return
		}
		seen[st] = true
		used = used.plus(st.size)
		if st.leaving && !st.of.open() {
			leaving = leaving.plus(st.size)
		}
		if st.state == unanswered {
			unknown++
		}
	}
	for _, st := range r.nodes {
		add(st)
	}
	for _, b := range rt.bookings {
		for _, st := range b.shares {
			add(st)
		}
		used = used.minus(b.credit)
	}
	for _, v := range rt.reservations {
		if v.ended && v.free != (amount{}) {
			rt.t.Errorf("a reservation that has ended has %v", v.free)
		}
		used = used.plus(v.free)
	}
	if used != r.used || leaving != r.leaving || unknown != r.unknown {
		rt.t.Errorf("used %v, leaving %v, %d unknown; its parts make %v, %v, %d", r.used, r.leaving, r.unknown, used, leaving, unknown)
	}
	if !r.used.fits(r.limit) && !rt.renews {
		rt.t.Errorf("used %v of %v", r.used, r.limit)
	}
}

// Each limit has room for as much as it says, and not for one node or one byte more.
func TestRoomLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what         string
			nodes, bytes int
			path         string // of the last node
			fits         bool
			says         string
		}{
			{"nodes", 3, plenty, "/c", true, ""},
			{"one node more", 2, plenty, "/c", false, "2 of at most 2 nodes (WithMaxNodes)"},
			{"bytes", 100, 3 * (4 + 2), "/c", true, ""},
			{"one byte more", 100, 3 * (4 + 2), "/cc", false, "12 of at most 18 bytes of paths (WithMaxNodeBytes)"},
			{"in UTF-8", 100, 2*(4+2) + 4 + 3, "/é", true, ""},
			{"in UTF-8, one byte more", 100, 2*(4+2) + 4 + 2, "/é", false, "WithMaxNodeBytes"},
		} {
			rt := newRoomTest(t, c.nodes, c.bytes)
			rt.made("/a", "/b")
			b, err := rt.bookFrom(t.Context(), nil, []amount{rt.sizeOfNew(c.path, false)})
			if (err == nil) != c.fits || err != nil && (!errors.Is(err, ErrTooManyNodes) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v", c.what, err)
			}
			rt.bookings = append(rt.bookings, b)
			if b == nil {
				rt.bookings = nil
			}
			b.settle([]string{c.path}, nil)
			rt.check()
			rt.gone("/a")
			if c.path != "/cc" {
				rt.made("/d")
			}
		}
	})
}

// The path counts with the chroot, and that of a sequential node with the number that the server will add.
func TestRoomCountsWholePaths(t *testing.T) {
	cfg := newFakeConfig(t)
	cfg.chroot = "/app"
	rt := &roomTest{t: t, Session: bareSession(t, cfg)}
	if got, want := rt.sizeOfNew("/d/n-", true), (amount{1, 4 + len("/app/d/n-0000000001")}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// A caller waits for room that is on its way, and not for that of holders and of those that wait before it.
func TestRoomWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 3, plenty)
		rt.made("/a0", "/a1", "/a2")
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
		rt.leave("/a0", "/a1")
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(3)}), ErrTooManyNodes)
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(4)}), ErrTooManyNodes) // by itself
		two := rt.begin(t.Context(), wanted{size: rt.size(2)})
		rt.waits(two)
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes) // the room of those that wait is not on its way
		rt.leave("/a2")
		one := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.ends(rt.begin(t.Context(), wanted{}), nil) // what needs no room does not queue
		rt.gone("/a1")
		rt.waits(two)
		rt.waits(one) // first come, first served
		rt.gone("/a0")
		rt.ends(two, nil)
		rt.waits(one)
		rt.gone("/a2")
		rt.ends(one, nil)
	})
}

// The end of the wait makes way for others, in whatever way it comes.
func TestRoomWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 2, plenty)
		rt.made("/a0", "/a1")
		rt.leave("/a0", "/a1")
		ctx, cancel := context.WithCancel(t.Context())
		two := rt.begin(ctx, wanted{size: rt.size(2)})
		rt.gone("/a0")
		rt.waits(two)
		cancel()
		rt.ends(two, context.Canceled)
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), nil)
		last := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(last)
		rt.end(lossError(1, lossExpired))
		rt.ends(last, ErrLost)
	})
}

// If the server refuses to delete a node, its room is not on its way any more.
func TestRoomStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 1, plenty)
		rt.made("/a0")
		rt.leave("/a0")
		one := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(one)
		rt.room.stay(rt.room.noted("/a0"))
		rt.ends(one, ErrTooManyNodes)
		rt.gone("/a0") // after all
		rt.made("/a1")
	})
}

// Places that are kept are given up all at once, and no more than are missing.
func TestRoomSpares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 8, plenty)
		var kept []string
		for i := range 6 {
			kept = append(kept, fmt.Sprintf("/a%d", i))
		}
		rt.made(kept...)
		rt.made("/b0", "/b1") // held
		var asked []int
		rt.room.spare = func(a amount) bool {
			asked = append(asked, a.nodes)
			if len(kept) == 0 {
				return false
			}
			n := min(a.nodes, len(kept))
			rt.leave(kept[:n]...)
			kept = kept[n:]
			return true
		}
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(12)}), ErrTooManyNodes)
		if len(asked) != 0 {
			t.Errorf("what is above the limit by itself asks for %v places", asked)
		}
		four := rt.begin(t.Context(), wanted{size: rt.size(4)})
		rt.waits(four)
		two := rt.begin(t.Context(), wanted{size: rt.size(2)})
		rt.waits(two)
		if !slices.Equal(asked, []int{4, 2}) {
			t.Errorf("it asks for %v places, want 4 and 2", asked)
		}
		for i := range 6 {
			rt.gone(fmt.Sprintf("/a%d", i))
		}
		rt.ends(four, nil)
		rt.ends(two, nil)
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes) // no place is kept any more

		// The last place may be given up by somebody else just before.
		rt = newRoomTest(t, 1, plenty)
		rt.made("/a0")
		rt.room.spare = func(amount) bool { rt.leave("/a0"); return false }
		one := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(one)
		rt.gone("/a0")
		rt.ends(one, nil)
	})
}

// A request that deletes a node and creates another needs room for one.
func TestRoomRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what string
			end  func(rt *roomTest, b *booking)
			node string // that is there then
		}{
			{"carried out", func(rt *roomTest, b *booking) { b.settle([]string{"/a1"}, nil); rt.gone("/a0") }, "/a1"},
			{"refused", func(_ *roomTest, b *booking) { b.settle(nil, zk.ErrNoNode) }, "/a0"},
			{"lost, and carried out", func(rt *roomTest, b *booking) {
				b.settle(nil, zk.ErrConnectionClosed)
				b.resolve(0, "/a1")
				rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
				rt.gone("/a0")
			}, "/a1"},
			{"lost, and not carried out", func(_ *roomTest, b *booking) { b.settle(nil, zk.ErrConnectionClosed); b.resolve(0, "") }, "/a0"},
			{"lost, and the old node is found gone first", func(rt *roomTest, b *booking) {
				b.settle(nil, zk.ErrConnectionClosed)
				rt.gone("/a0")
				rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
				b.resolve(0, "/a1")
			}, "/a1"},
		} {
			rt := newRoomTest(t, 1, plenty)
			rt.made("/a0")
			b := rt.booked(nil, []string{"/a0"}, "/a1")
			rt.check()
			c.end(rt, b)
			rt.check()
			rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
			if rt.room.noted(c.node) == nil {
				t.Errorf("%s: %s is not counted", c.what, c.node)
			}
			rt.gone(c.node)
			rt.made("/a2")
		}
	})
}

// A caller that can have a node of its own deleted does that before it is refused, and no more than once. Those that
// wait already get that room before it, and it what they have waited for.
func TestRoomYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what  string
			nodes int // that are wanted
			end   func(rt *roomTest)
			err   error
		}{
			{"as much", 1, func(rt *roomTest) { rt.gone("/a0") }, nil},
			{"the server refuses", 1, func(rt *roomTest) { rt.room.stay(rt.room.noted("/a0")) }, ErrTooManyNodes},
			{"more", 2, func(*roomTest) {}, ErrTooManyNodes},
		} {
			rt := newRoomTest(t, 2, plenty)
			rt.made("/a0", "/a1")
			yields := 0
			me := rt.begin(t.Context(), wanted{size: rt.size(c.nodes), yield: func() { yields++; rt.leave("/a0") }})
			if c.nodes == 1 {
				rt.waits(me)
				rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes) // it does not get that room
			}
			c.end(rt)
			rt.ends(me, c.err)
			if yields != 1 {
				t.Errorf("%s: yield was called %d times", c.what, yields)
			}
		}

		rt := newRoomTest(t, 2, plenty)
		rt.made("/a0")
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1), yield: func() { t.Error("yield was called") }}), nil)

		// A caller whose wait ends leaves the room to others.
		rt = newRoomTest(t, 1, plenty)
		rt.made("/a0")
		ctx, cancel := context.WithCancel(t.Context())
		me := rt.begin(ctx, wanted{size: rt.size(1), yield: func() { rt.leave("/a0") }})
		cancel()
		rt.ends(me, context.Canceled)
		other := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(other)
		rt.gone("/a0")
		rt.ends(other, nil)
	})
}

// A reservation keeps the room of its nodes that go, until its end.
func TestRoomComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 2, plenty)
		v := rt.reserved(wanted{size: rt.size(2)})
		rt.booked(v, nil, "/a0", "/a1").settle([]string{"/a0", "/a1"}, nil)
		rt.leave("/a1")
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
		rt.gone("/a1")
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
		rt.booked(v, nil, "/a2").settle(nil, zk.ErrNoNode) // refused
		rt.booked(v, nil, "/a3").settle([]string{"/a3"}, nil)
		rt.leave("/a3")
		v.end()
		v.end()
		other := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(other)
		rt.gone("/a3")
		rt.ends(other, nil)
	})
}

// A create whose reply was lost counts until it is known what became of it. If its node is about to be deleted,
// others may wait for the room.
func TestRoomInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 1, plenty)
		b := rt.booked(nil, nil, "/a0")
		if !rt.room.any() || rt.room.has() {
			t.Error("a node may be there")
		}
		b.settle(nil, zk.ErrConnectionClosed)
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
		b.depart(0)
		other := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(other)
		b.resolve(0, "/a0") // it is there
		rt.waits(other)
		if !rt.room.has() {
			t.Error("it is there")
		}
		rt.gone("/a0")
		b.resolve(0, "")
		rt.ends(other, nil)
		rt.reservations[len(rt.reservations)-1].end()
		if rt.room.any() {
			t.Error("nothing is there")
		}
	})
}

// Nodes are counted once, and uncounted once, in whatever order replies come.
func TestRoomCountsOnce(t *testing.T) {
	rt := newRoomTest(t, 3, plenty)
	rt.made("/a0")
	rt.room.found("/a0", rt.size(1), nil)
	old := rt.room.noted("/a0")
	rt.made("/a0") // it has gone, and the reply to the delete comes later
	rt.room.deleted(old)
	rt.room.deleted(old)
	rt.room.deleted(rt.room.noted("/never"))
	rt.check()
	if rt.room.noted("/a0") == nil || rt.room.used != rt.size(1) {
		t.Errorf("used %v", rt.room.used)
	}
	v := rt.reserved(wanted{size: rt.size(1)})
	rt.room.found("/a1", rt.size(1), v)
	rt.check()
	v.end()
	if rt.room.used != rt.size(2) {
		t.Errorf("used %v", rt.room.used)
	}
}

// Random operations keep the account equal to its parts, and end with an empty account.
func TestRoomModel(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) { roomModel(t, rand.New(rand.NewPCG(seed, 1))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func roomModel(t *testing.T, rng *rand.Rand) {
	rt := newRoomTest(t, 4, plenty)
	var open []*booking
	next := 0
	for range 80 {
		switch rng.IntN(9) {
		case 0: // reserve
			if v, err := rt.reserve(t.Context(), wanted{size: rt.size(1 + rng.IntN(2))}); err == nil {
				rt.reservations = append(rt.reservations, v)
			}
		case 1, 2, 3: // send
			var v *reservation
			if n := len(rt.reservations); n > 0 && rng.IntN(3) > 0 {
				v = rt.reservations[rng.IntN(n)]
			}
			var deletes []string
			for path := range rt.room.nodes {
				if rng.IntN(3) == 0 {
					deletes = append(deletes, path)
				}
			}
			sizes := slices.Repeat([]amount{rt.size(1)}, 1+rng.IntN(2))
			if b, err := rt.bookFrom(t.Context(), v, sizes, deletes...); err == nil {
				rt.bookings, open = append(rt.bookings, b), append(open, b)
				rt.renews = rt.renews || b.credit != (amount{})
			}
		case 4, 5: // answer
			if len(open) == 0 {
				continue
			}
			i := rng.IntN(len(open))
			b := open[i]
			paths := make([]string, len(b.shares))
			for j := range paths {
				next++
				paths[j] = fmt.Sprintf("/%c%d", 'a'+next/10%26, next%10)
			}
			switch rng.IntN(5) {
			case 0:
				b.settle(nil, zk.ErrNoAuth)
			case 1:
				b.settle(nil, zk.ErrConnectionClosed)
				continue
			case 2:
				b.settle(nil, zk.ErrConnectionClosed)
				for j := range paths {
					b.resolve(j, "")
				}
			default:
				b.settle(paths, nil)
			}
			open = slices.Delete(open, i, i+1)
		case 6: // gone
			for path := range rt.room.nodes {
				rt.gone(path)
				break
			}
		case 7: // leave, or stay
			for _, st := range rt.room.nodes {
				if rng.IntN(2) == 0 {
					rt.room.depart(st)
				} else {
					rt.room.stay(st)
				}
				break
			}
		case 8: // end
			if n := len(rt.reservations); n > 0 {
				rt.reservations[rng.IntN(n)].end()
			}
		}
		rt.check()
		if t.Failed() {
			return
		}
		// Nobody answers while a caller waits, so nothing may be on its way when the next one asks.
		for _, st := range rt.room.nodes {
			rt.room.stay(st)
		}
	}
	for _, b := range open {
		b.settle(nil, zk.ErrConnectionClosed)
		for j := range b.shares {
			b.resolve(j, "")
		}
	}
	for _, v := range rt.reservations {
		v.end()
	}
	for path := range rt.room.nodes {
		rt.gone(path)
	}
	if rt.room.used != (amount{}) || rt.room.leaving != (amount{}) || rt.room.any() || len(rt.room.waiting) > 0 {
		t.Errorf("left: used %v, leaving %v, %d unknown", rt.room.used, rt.room.leaving, rt.room.unknown)
	}
}

// The strict rules of the clock hold while the session has a node, or may have one.
func TestRoomAny(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(rt *roomTest)
		want bool
	}{
		"none":          {func(*roomTest) {}, false},
		"one asked for": {func(rt *roomTest) { rt.booked(nil, nil, "/a0") }, true},
		"one refused":   {func(rt *roomTest) { rt.booked(nil, nil, "/a0").settle(nil, zk.ErrNoAuth) }, false},
		"one made":      {func(rt *roomTest) { rt.made("/a0") }, true},
		"one deleted":   {func(rt *roomTest) { rt.made("/a0"); rt.gone("/a0") }, false},
		"a lost reply":  {func(rt *roomTest) { rt.booked(nil, nil, "/a0").settle(nil, zk.ErrConnectionClosed) }, true},
		"found to be gone": {func(rt *roomTest) {
			b := rt.booked(nil, nil, "/a0")
			b.settle(nil, zk.ErrConnectionClosed)
			b.resolve(0, "")
		}, false},
	} {
		rt := newRoomTest(t, 3, plenty)
		if c.do(rt); rt.room.any() != c.want {
			t.Errorf("%s: any is not %v", name, c.want)
		}
	}
}

// Whatever becomes of a renewal, a waiter for another node to go is not refused for it, and a reservation that
// goes on has no more room than before.
func TestRoomRenewalBesideWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, end := range map[string]func(*booking, *share){
			"carried out": func(b *booking, old *share) { b.settle([]string{"/b1"}, nil, old) },
			"refused":     func(b *booking, _ *share) { b.settle(nil, zk.ErrNoNode) },
			"not sent":    func(b *booking, _ *share) { b.settle(nil, errNotSent) },
		} {
			rt := newRoomTest(t, 2, plenty)
			rt.made("/a0")
			rt.leave("/a0")
			v := rt.reserved(wanted{size: rt.size(1)})
			rt.booked(v, nil, "/b0").settle([]string{"/b0"}, nil)
			one := rt.begin(t.Context(), wanted{size: rt.size(1)})
			rt.waits(one)
			b := rt.booked(v, []string{"/b0"}, "/b1")
			end(b, rt.room.noted("/b0"))
			rt.waits(one)
			if v.free != (amount{}) || rt.room.used != rt.size(2) {
				t.Errorf("%s: used %v, and %v is set aside", what, rt.room.used, v.free)
			}
			rt.gone("/a0")
			rt.ends(one, nil)
		}
	})
}

// A caller whose context has ended counts no more, although its goroutine has not come to withdraw.
func TestRoomOfWaitersThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 1, plenty)
		rt.made("/a0")
		rt.leave("/a0")
		ctx, cancel := context.WithCancel(t.Context())
		old := &asking{ended: ctx.Done(), v: &reservation{r: &rt.room}, need: rt.size(1)}
		if err := rt.room.ask(old); err != nil {
			t.Fatal(err)
		}
		rt.ends(rt.begin(t.Context(), wanted{size: rt.size(1)}), ErrTooManyNodes)
		cancel()
		one := rt.begin(t.Context(), wanted{size: rt.size(1)})
		rt.waits(one)
		rt.gone("/a0")
		rt.ends(one, nil)
		rt.room.withdraw(old)
		rt.check()
	})
}

// A caller that has waited for a node of others yields its own when the server refuses to delete the other.
func TestRoomYieldsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 2, plenty)
		rt.made("/a0", "/a1")
		rt.leave("/a0")
		yields := 0
		me := rt.begin(t.Context(), wanted{size: rt.size(1), yield: func() { yields++; rt.leave("/a1") }})
		rt.waits(me)
		rt.room.stay(rt.room.noted("/a0"))
		rt.waits(me)
		rt.gone("/a1")
		rt.ends(me, nil)
		if yields != 1 {
			t.Errorf("yield was called %d times", yields)
		}
	})
}
