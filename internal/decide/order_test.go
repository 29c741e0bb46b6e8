package decide

import (
	"math"
	"slices"
	"testing"
)

// Only the sequence number decides the order.
func TestParseNodesOrder(t *testing.T) {
	listing := []string{
		"_c_0b3ea4c1-6f9a-4c4e-9d53-2f1c1c8f6a01-lock-0000000010",
		"foo",
		"zzzz__lock__0000000009",
		"lock--000000001",
		"_c_00000000-0000-0000-0000-000000000000-lock-2147483647",
		"_c_ffffffff-ffff-ffff-ffff-ffffffffffff-lock-0000000000",
		"aaa-lock-0000000011",
	}
	want := []int32{-1, 0, 9, 10, 11, math.MaxInt32}
	for range 20 {
		var got []int32
		for _, n := range ParseNodes(listing) {
			got = append(got, n.Sequence)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("order %v, want %v", got, want)
		}
		listing = append(listing[3:], listing[:3]...)
	}
}

// After a downgrade two nodes can share a sequence number. Their order is the same for all.
func TestParseNodesEqualSequences(t *testing.T) {
	a, b := "_c_a-__READ__0000000001", "_c_b-__WRIT__0000000001"
	for _, listing := range [][]string{{a, b}, {b, a}} {
		nodes := ParseNodes(listing)
		if len(nodes) != 2 || nodes[0].Name != a || nodes[1].Name != b {
			t.Errorf("order of %v is %v", listing, nodes)
		}
	}
}
