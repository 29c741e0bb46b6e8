package room

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
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
	var open []*Booking
	next := 0
	for range 80 {
		switch rng.IntN(9) {
		case 0: // reserve
			if v, err := rt.Reserve(t.Context(), rt.want(1+rng.IntN(2))); err == nil {
				rt.reservations = append(rt.reservations, v)
			}
		case 1, 2, 3: // send
			var v *Reservation
			if n := len(rt.reservations); n > 0 && rng.IntN(3) > 0 {
				v = rt.reservations[rng.IntN(n)]
			}
			ops := slices.Repeat([]Op{{Creates: rt.size(1)}}, 1+rng.IntN(2))
			for path := range rt.nodes {
				if rng.IntN(3) == 0 {
					ops = append(ops, Op{Deletes: path})
				}
			}
			if b, err := rt.Book(t.Context(), v, ops...); err == nil {
				if rng.IntN(2) == 0 {
					b.Sending()
				}
				rt.bookings, open = append(rt.bookings, b), append(open, b)
				rt.renews = rt.renews || b.credit != (Size{})
			}
		case 4, 5: // answer
			if len(open) == 0 {
				continue
			}
			i := rng.IntN(len(open))
			b := open[i]
			paths := make([]string, len(b.parts))
			for j, p := range b.parts {
				if p.creates == nil {
					continue
				}
				next++
				paths[j] = fmt.Sprintf("/%c%d", 'a'+next/10%26, next%10)
			}
			switch rng.IntN(5) {
			case 0:
				b.Failed()
			case 1:
				b.Lost()
				continue
			case 2:
				b.Lost()
				for j := range paths {
					b.Resolve(j, "")
				}
			default:
				b.Made(paths)
			}
			open = slices.Delete(open, i, i+1)
		case 6: // gone
			for path := range rt.nodes {
				rt.gone(path)
				break
			}
		case 7: // leave, or stay
			for _, n := range rt.nodes {
				if rng.IntN(2) == 0 {
					rt.Depart(n)
				} else {
					rt.Stay(n)
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
		for _, n := range rt.nodes {
			rt.Stay(n)
		}
	}
	for _, b := range open {
		b.Lost()
		for j := range b.parts {
			b.Resolve(j, "")
		}
	}
	for _, v := range rt.reservations {
		v.End()
	}
	for path := range rt.nodes {
		rt.gone(path)
	}
	if rt.used != (Size{}) || rt.leaving != (Size{}) || rt.Any() || len(rt.waiting)+len(rt.open) > 0 {
		t.Errorf("left: used %v, leaving %v, %d unknown", rt.used, rt.leaving, rt.unknown)
	}
}
