package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

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
			b, err := rt.Book(t.Context(), nil, Op{Creates: SizeOf(c.path, false)})
			if (err == nil) != c.fits || err != nil && (!errors.Is(err, ErrTooManyNodes) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v", c.what, err)
			}
			rt.bookings = append(rt.bookings, b)
			if b == nil {
				rt.bookings = nil
			}
			b.Made([]string{c.path})
			rt.check()
			rt.gone("/a")
			if c.path != "/cc" {
				rt.made("/d")
			}
		}
	})
}

// The path of a sequential node counts with the number that the server will add.
func TestSizeOfSequential(t *testing.T) {
	if got, want := SizeOf("/app/d/n-", true), (Size{1, 4 + len("/app/d/n-0000000001")}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// A caller waits for room that is on its way, and not for that of holders and of those that wait before it.
func TestRoomWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 3, plenty)
		rt.made("/a0", "/a1", "/a2")
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
		rt.leave("/a0", "/a1")
		rt.ends(rt.begin(t.Context(), rt.want(3)), ErrTooManyNodes)
		rt.ends(rt.begin(t.Context(), rt.want(4)), ErrTooManyNodes) // by itself
		two := rt.begin(t.Context(), rt.want(2))
		rt.waits(two)
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes) // the room of those that wait is not on its way
		rt.leave("/a2")
		one := rt.begin(t.Context(), rt.want(1))
		rt.ends(rt.begin(t.Context(), Want{}), nil) // what needs no room does not queue
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
		two := rt.begin(ctx, rt.want(2))
		rt.gone("/a0")
		rt.waits(two)
		cancel()
		rt.ends(two, context.Canceled)
		rt.ends(rt.begin(t.Context(), rt.want(1)), nil)
		last := rt.begin(t.Context(), rt.want(1))
		rt.waits(last)
		lost := errors.New("lost")
		rt.die(lost)
		rt.ends(last, lost)
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
		v, err := rt.Reserve(ctx, rt.wantOr(1, func() { rt.gone("/a0"); cancel() }))
		if err == nil {
			rt.reservations = append(rt.reservations, v)
		} else {
			refused++
			if n := len(rt.open); n > 0 {
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
		one := rt.begin(t.Context(), rt.want(1))
		rt.waits(one)
		rt.Stay(rt.At("/a0"))
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
		rt.spare = func(a Size) bool {
			asked = append(asked, a.Nodes)
			if len(kept) == 0 {
				return false
			}
			n := min(a.Nodes, len(kept))
			rt.leave(kept[:n]...)
			kept = kept[n:]
			return true
		}
		rt.ends(rt.begin(t.Context(), rt.want(12)), ErrTooManyNodes)
		if len(asked) != 0 {
			t.Errorf("what is above the limit by itself asks for %v places", asked)
		}
		four := rt.begin(t.Context(), rt.want(4))
		rt.waits(four)
		two := rt.begin(t.Context(), rt.want(2))
		rt.waits(two)
		if !slices.Equal(asked, []int{4, 2}) {
			t.Errorf("it asks for %v places, want 4 and 2", asked)
		}
		for i := range 6 {
			rt.gone(fmt.Sprintf("/a%d", i))
		}
		rt.ends(four, nil)
		rt.ends(two, nil)
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes) // no place is kept any more

		// The last place may be given up by somebody else just before.
		rt = newRoomTest(t, 1, plenty)
		rt.made("/a0")
		rt.spare = func(Size) bool { rt.leave("/a0"); return false }
		one := rt.begin(t.Context(), rt.want(1))
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
			{"the server refuses", 1, func(rt *roomTest) { rt.Stay(rt.At("/a0")) }, ErrTooManyNodes},
			{"more", 2, func(*roomTest) {}, ErrTooManyNodes},
		} {
			rt := newRoomTest(t, 2, plenty)
			rt.made("/a0", "/a1")
			yields := 0
			me := rt.begin(t.Context(), rt.wantOr(c.nodes, func() { yields++; rt.leave("/a0") }))
			if c.nodes == 1 {
				rt.waits(me)
				rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes) // it does not get that room
			}
			c.end(rt)
			rt.ends(me, c.err)
			if yields != 1 {
				t.Errorf("%s: yield was called %d times", c.what, yields)
			}
		}

		rt := newRoomTest(t, 2, plenty)
		rt.made("/a0")
		rt.ends(rt.begin(t.Context(), rt.wantOr(1, func() { t.Error("yield was called") })), nil)

		// A caller whose wait ends leaves the room to others.
		rt = newRoomTest(t, 1, plenty)
		rt.made("/a0")
		ctx, cancel := context.WithCancel(t.Context())
		me := rt.begin(ctx, rt.wantOr(1, func() { rt.leave("/a0") }))
		cancel()
		rt.ends(me, context.Canceled)
		other := rt.begin(t.Context(), rt.want(1))
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
		"one refused":   {func(rt *roomTest) { rt.booked(nil, nil, "/a0").Failed() }, false},
		"one made":      {func(rt *roomTest) { rt.made("/a0") }, true},
		"one deleted":   {func(rt *roomTest) { rt.made("/a0"); rt.gone("/a0") }, false},
		"a lost reply":  {func(rt *roomTest) { rt.booked(nil, nil, "/a0").Lost() }, true},
		"found to be gone": {func(rt *roomTest) {
			b := rt.booked(nil, nil, "/a0")
			b.Lost()
			b.Resolve(0, "")
		}, false},
	} {
		rt := newRoomTest(t, 3, plenty)
		if c.do(rt); rt.Any() != c.want {
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
		old := &asking{ended: ctx.Done(), v: &Reservation{a: rt.Account}, need: rt.size(1)}
		if err := rt.ask(old); err != nil {
			t.Fatal(err)
		}
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
		cancel()
		one := rt.begin(t.Context(), rt.want(1))
		rt.waits(one)
		rt.gone("/a0")
		rt.ends(one, nil)
		rt.withdraw(old)
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
				v, err := rt.Reserve(ctx, rt.want(2))
				if err != nil {
					t.Fatal(err)
				}
				rt.reservations = append(rt.reservations, v)
				b := rt.booked(v, nil, "/a0")
				rt.ends(rt.begin(t.Context(), rt.want(2)), ErrTooManyNodes)
				cancel()
				next := rt.begin(t.Context(), rt.want(2))
				rt.waits(next)
				if stays {
					b.Made([]string{"/a0"})
					v.End()
					rt.ends(next, ErrTooManyNodes)
					return
				}
				b.Failed()
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
		me := rt.begin(t.Context(), rt.wantOr(1, func() { yields++; rt.leave("/a1") }))
		rt.waits(me)
		rt.Stay(rt.At("/a0"))
		rt.waits(me)
		rt.gone("/a1")
		rt.ends(me, nil)
		if yields != 1 {
			t.Errorf("yield was called %d times", yields)
		}
	})
}
