package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
)

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
			var v *Reservation
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
				rt.reservations[rng.IntN(n)].End()
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
		v.End()
	}
	for path := range rt.room.nodes {
		rt.gone(path)
	}
	if rt.room.used != (amount{}) || rt.room.leaving != (amount{}) || rt.room.any() || len(rt.room.waiting)+len(rt.room.open) > 0 {
		t.Errorf("left: used %v, leaving %v, %d unknown", rt.room.used, rt.room.leaving, rt.room.unknown)
	}
}
