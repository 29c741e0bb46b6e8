package line

import (
	"slices"
	"testing"
)

// A line keeps its order, also when things are put back at its front.
func TestLine(t *testing.T) {
	var l Line[int]
	var want []int
	for i := range 1000 {
		l.Push(i)
		want = append(want, i)
		if i%3 == 0 {
			var out []int
			for range 1 + i%5 {
				if l.Len() > 0 {
					out = append(out, l.Pop())
				}
			}
			if i%2 == 0 {
				l.Unpop(out)
			} else {
				want = want[len(out):]
			}
		}
		if !slices.Equal(l.Rest(), want) {
			t.Fatalf("after %d: %v, want %v", i, l.Rest(), want)
		}
	}
	for range 3 {
		l.Push(-1)
		l.Unpop(make([]int, 100))
	}
	if l.Len() != len(want)+303 {
		t.Errorf("%d things, want %d", l.Len(), len(want)+303)
	}
}

// With a few things in line for a long time, the room is bounded by their number.
func TestRoomIsBounded(t *testing.T) {
	var l Line[int]
	for i := range 10_000 {
		if l.Push(i); l.Len() > 20 {
			l.Pop()
		}
	}
	if cap(l.all) > 200 {
		t.Errorf("room for %d things, with 20 in line", cap(l.all))
	}
}

// Things behind the first leave too, and the order of the others stays.
func TestRemove(t *testing.T) {
	var l Line[int]
	for i := range 5 {
		l.Push(i)
	}
	if l.Remove(0) != 0 || l.Remove(2) != 3 || !slices.Equal(l.Rest(), []int{1, 2, 4}) {
		t.Errorf("%v stay", l.Rest())
	}
}
