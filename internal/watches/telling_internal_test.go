package watches

import (
	"slices"
	"testing"
)

// Each function is called once when the watch ends, unless it was stopped before, in whatever order
// they are stopped. To stop one afterwards does nothing.
func TestTellings(t *testing.T) {
	for _, stops := range [][]int{nil, {0}, {1}, {2}, {0, 1}, {1, 0}, {0, 2}, {2, 1}, {1, 1}, {0, 1, 2}, {2, 1, 0}} {
		var w Watch
		told := make([]int, 3)
		var stop []func()
		for i := range told {
			stop = append(stop, w.AtEvent(func() { told[i]++ }))
		}
		for _, i := range stops {
			stop[i]()
		}
		w.fire(Deleted)
		w.fire(Broken)
		for _, s := range stop {
			s()
		}
		for i, n := range told {
			if want := !slices.Contains(stops, i); (n == 1) != want || n > 1 {
				t.Errorf("stopped %v: %d was told %d times", stops, i, n)
			}
		}
	}
}
