package room

import (
	"testing"
	"testing/synctest"
)

// A request that deletes a node and creates another needs room for one.
func TestRoomRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what string
			end  func(rt *roomTest, b *Booking)
			node string // that is there then
		}{
			{"carried out", func(rt *roomTest, b *Booking) { b.Made([]string{"/a1"}); rt.gone("/a0") }, "/a1"},
			{"refused", func(_ *roomTest, b *Booking) { b.Failed() }, "/a0"},
			{"lost, and carried out", func(rt *roomTest, b *Booking) {
				b.Lost()
				b.Resolve(0, "/a1")
				rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
				rt.gone("/a0")
			}, "/a1"},
			{"lost, and not carried out", func(_ *roomTest, b *Booking) { b.Lost(); b.Resolve(0, "") }, "/a0"},
			{"lost, and the old node is found gone first", func(rt *roomTest, b *Booking) {
				b.Lost()
				rt.gone("/a0")
				rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
				b.Resolve(0, "/a1")
			}, "/a1"},
		} {
			rt := newRoomTest(t, 1, plenty)
			rt.made("/a0")
			b := rt.booked(nil, []string{"/a0"}, "/a1")
			rt.check()
			c.end(rt, b)
			rt.check()
			rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
			if rt.At(c.node) == nil {
				t.Errorf("%s: %s is not counted", c.what, c.node)
			}
			rt.gone(c.node)
			rt.made("/a2")
		}
	})
}

// A reservation keeps the room of its nodes that go, until its end.
func TestRoomComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 2, plenty)
		v := rt.reserved(rt.want(2))
		rt.booked(v, nil, "/a0", "/a1").Made([]string{"/a0", "/a1"})
		rt.leave("/a1")
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
		rt.gone("/a1")
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
		rt.booked(v, nil, "/a2").Failed() // refused
		rt.booked(v, nil, "/a3").Made([]string{"/a3"})
		rt.leave("/a3")
		v.End()
		v.End()
		other := rt.begin(t.Context(), rt.want(1))
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
		if !rt.Any() || rt.Has() {
			t.Error("a node may be there")
		}
		b.Lost()
		rt.ends(rt.begin(t.Context(), rt.want(1)), ErrTooManyNodes)
		b.Depart(0)
		other := rt.begin(t.Context(), rt.want(1))
		rt.waits(other)
		b.Resolve(0, "/a0") // it is there
		rt.waits(other)
		if !rt.Has() {
			t.Error("it is there")
		}
		rt.gone("/a0")
		b.Resolve(0, "")
		rt.ends(other, nil)
		rt.reservations[len(rt.reservations)-1].End()
		if rt.Any() {
			t.Error("nothing is there")
		}
	})
}

// Nodes are counted once, and uncounted once, in whatever order replies come.
func TestRoomCountsOnce(t *testing.T) {
	rt := newRoomTest(t, 3, plenty)
	rt.made("/a0")
	rt.Found("/a0", rt.size(1), nil)
	old := rt.At("/a0")
	rt.made("/a0") // it has gone, and the reply to the delete comes later
	rt.Gone(old)
	rt.Gone(old)
	rt.Gone(rt.At("/never"))
	rt.check()
	if rt.At("/a0") == nil || rt.used != rt.size(1) {
		t.Errorf("used %v", rt.used)
	}
	v := rt.reserved(rt.want(1))
	rt.Found("/a1", rt.size(1), v)
	rt.check()
	v.End()
	if rt.used != rt.size(2) {
		t.Errorf("used %v", rt.used)
	}
}

// Whatever becomes of a renewal, a waiter for another node to go is not refused for it, and a reservation that
// goes on has no more room than before.
func TestRoomRenewalBesideWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, end := range map[string]func(*Booking){
			"carried out": func(b *Booking) { b.Sending(); b.Made([]string{"/b1"}) },
			"refused":     func(b *Booking) { b.Sending(); b.Failed() },
			"not sent":    func(b *Booking) { b.Failed() },
		} {
			rt := newRoomTest(t, 2, plenty)
			rt.made("/a0")
			rt.leave("/a0")
			v := rt.reserved(rt.want(1))
			rt.booked(v, nil, "/b0").Made([]string{"/b0"})
			one := rt.begin(t.Context(), rt.want(1))
			rt.waits(one)
			b := rt.booked(v, []string{"/b0"}, "/b1")
			end(b)
			rt.waits(one)
			if v.free != (Size{}) || rt.used != rt.size(2) {
				t.Errorf("%s: used %v, and %v is set aside", what, rt.used, v.free)
			}
			rt.gone("/a0")
			rt.ends(one, nil)
		}
	})
}

// Nodes that a request makes and deletes again are gone when it was carried out, also at one path.
func TestMadeAndDeleted(t *testing.T) {
	rt := newRoomTest(t, 2, plenty)
	creates, deletes := Op{Creates: rt.size(1)}, Op{Deletes: "/a0"}
	b, err := rt.Book(t.Context(), nil, creates, deletes, creates, deletes)
	if err != nil {
		t.Fatal(err)
	}
	b.Sending()
	b.Made([]string{"/a0", "", "/a0", ""})
	if rt.used != (Size{}) || rt.Any() {
		t.Errorf("used %v, and the nodes %v are there", rt.used, rt.nodes)
	}
}

// A node of a reservation that is full is about to go. Another one in its place gets the room that comes back to the
// reservation, and needs no more.
func TestRoomForANodeInPlaceOfOneThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 3, plenty)
		rt.made("/a0") // of another caller
		v := rt.reserved(rt.want(2))
		rt.booked(v, nil, "/b0").Made([]string{"/b0"})
		rt.booked(v, nil, "/c0").Made([]string{"/c0"})
		extend := func() chan error {
			done := make(chan error, 1)
			go func() { done <- rt.Extend(t.Context(), v, rt.want(1)) }()
			return done
		}
		rt.ends(extend(), ErrTooManyNodes) // nothing goes
		rt.leave("/c0")
		again := extend()
		rt.waits(again)
		rt.gone("/c0")
		rt.ends(again, nil)
		rt.booked(v, nil, "/c1").Made([]string{"/c1"})
		rt.leave("/c1")
		stays := extend()
		rt.waits(stays)
		rt.Stay(rt.At("/c1")) // the server refuses to delete it
		rt.ends(stays, ErrTooManyNodes)
		rt.leave("/c1")
		ends := extend()
		rt.waits(ends)
		v.End()
		rt.ends(ends, nil)
		if rt.used != rt.size(3) {
			t.Errorf("%v is used, want the room of the three nodes", rt.used)
		}
	})
}

// A node in place of one that is about to go takes more room until that has gone, and no longer: others get it then, and
// wait for it until then.
func TestRoomOfANodeThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRoomTest(t, 3, plenty)
		v := rt.reserved(rt.want(2))
		rt.booked(v, nil, "/b0").Made([]string{"/b0"})
		rt.booked(v, nil, "/c0").Made([]string{"/c0"})
		rt.leave("/c0")
		rt.booked(v, nil, "/c1").Made([]string{"/c1"})
		rt.check()
		other := make(chan error, 1)
		go func() {
			v, err := rt.Reserve(t.Context(), rt.want(1))
			rt.reservations = append(rt.reservations, v)
			other <- err
		}()
		rt.waits(other)
		again := make(chan error, 1)
		go func() { again <- rt.Extend(t.Context(), v, rt.want(1)) }()
		rt.ends(again, ErrTooManyNodes) // the room of c0 is for the other
		rt.gone("/c0")
		rt.ends(other, nil)
		if rt.used != rt.size(3) || v.free != (Size{}) {
			t.Errorf("%v is used, and %v of the reservation is free; want the room of three nodes, and none", rt.used, v.free)
		}
		rt.leave("/c1")
		rt.gone("/c1") // which was not replaced: its room stays reserved
		if rt.used != rt.size(3) || v.free != rt.size(1) {
			t.Errorf("%v is used, and %v of the reservation is free; want the room of three nodes, and that of one", rt.used, v.free)
		}
	})
}
