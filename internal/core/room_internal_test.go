package core

import (
	"context"
	"errors"
	"fmt"
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
	reservations []*Reservation
	renews       bool // a request deletes a node: until the answer shows that it is gone, it counts beside the new one
}

func newRoomTest(t *testing.T, nodes, bytes int) *roomTest {
	cfg := newFakeConfig(t)
	cfg.MaxNodes, cfg.MaxNodeBytes = nodes, bytes
	return &roomTest{t: t, Session: bareSession(t, cfg)}
}

// plenty is more than the paths of any of these tests have.
const plenty = 1 << 20

// size returns the room of n nodes whose paths are a letter and a digit behind a slash.
func (rt *roomTest) size(n int) amount { return amount{n, n * (4 + len("/a0"))} }

func (rt *roomTest) reserved(w wanted) *Reservation {
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
func (rt *roomTest) booked(v *Reservation, deletes []string, paths ...string) *booking {
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
		_ = rt.mark(lossError(1, lossExpired))
		rt.Session.end()
		rt.ends(last, ErrLost)
	})
}

// A caller may get its room, and its context end before it sees that. Whichever of the two it sees, the account stays
// right. The runtime chooses at random.
func TestRoomGrantedAtTheEnd(t *testing.T) {
	const times = 100
	refused := 0
	for range times {
		rt := newRoomTest(t, 1, plenty)
		rt.made("/a0")
		ctx, cancel := context.WithCancel(t.Context())
		v, err := rt.reserve(ctx, wanted{size: rt.size(1), yield: func() { rt.gone("/a0"); cancel() }})
		if err == nil {
			rt.reservations = append(rt.reservations, v)
		} else {
			refused++
			if n := len(rt.room.open); n > 0 {
				t.Fatalf("%d reservations of callers that were refused are left", n)
			}
		}
		rt.check()
	}
	if refused == 0 || refused == times {
		t.Errorf("%d of %d callers have seen the end of their context", refused, times)
	}
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

// A caller whose context has ended counts no more, although its goroutine has not come to withdraw.
func TestRoomOfWaitersThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 1, plenty)
		rt.made("/a0")
		rt.leave("/a0")
		ctx, cancel := context.WithCancel(t.Context())
		old := &asking{ended: ctx.Done(), v: &Reservation{r: &rt.room}, need: rt.size(1)}
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

// The room of a caller whose context has ended is on its way. What stays of it is so no more once the caller has ended.
func TestRoomOfCallersThatGiveUp(t *testing.T) {
	for name, stays := range map[string]bool{"all of it": false, "but for a node": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := newRoomTest(t, 2, plenty)
				ctx, cancel := context.WithCancel(t.Context())
				v, err := rt.reserve(ctx, wanted{size: rt.size(2)})
				if err != nil {
					t.Fatal(err)
				}
				rt.reservations = append(rt.reservations, v)
				b := rt.booked(v, nil, "/a0")
				rt.ends(rt.begin(t.Context(), wanted{size: rt.size(2)}), ErrTooManyNodes)
				cancel()
				next := rt.begin(t.Context(), wanted{size: rt.size(2)})
				rt.waits(next)
				if stays {
					b.settle([]string{"/a0"}, nil)
					v.End()
					rt.ends(next, ErrTooManyNodes)
					return
				}
				b.settle(nil, zk.ErrNoNode)
				rt.waits(next)
				v.End()
				rt.ends(next, nil)
			})
		})
	}
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
