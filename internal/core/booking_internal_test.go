package core

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
)

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
		v.End()
		v.End()
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
		rt.reservations[len(rt.reservations)-1].End()
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
	v.End()
	if rt.room.used != rt.size(2) {
		t.Errorf("used %v", rt.room.used)
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
