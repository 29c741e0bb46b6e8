package nodedata

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/turnstile-go/turnstile/kinds"
)

// setting is a limit as it is read from a directory.
type setting struct {
	limit  Limit
	config kinds.Config
}

func (s setting) then(most int, at int64) setting {
	next := s.limit.Next(most, false, s.config)
	data := next.Encode()
	read, ours := ParseLimit(data)
	if !ours {
		panic("a limit of ours is not read back: " + string(data))
	}
	return setting{read, kinds.Config{Data: data, Changed: at, Version: s.config.Version + 1}}
}

func TestTightened(t *testing.T) {
	first := setting{FirstLimit(3), kinds.Config{Changed: 10, Version: 1}}
	byHand := setting{Limit{MaxLeases: 3}, kinds.Config{Changed: 10, Version: 2}}
	type want struct {
		by      int64
		from    int
		lowered int64
	}
	for _, c := range []struct {
		what string
		is   setting
		want want
	}{
		{"what New was given", first, want{}},
		{"raised", first.then(5, 20), want{}},
		{"lowered", first.then(2, 20), want{20, 3, 20}},
		{"raised and lowered", first.then(5, 20).then(3, 30), want{30, 5, 30}},
		{"lowered twice", first.then(2, 20).then(1, 30), want{30, 3, 30}},
		{"lowered and raised to more", first.then(2, 20).then(3, 30), want{0, 0, 20}},
		{"lowered and raised in part", first.then(1, 20).then(2, 30), want{20, 3, 20}},
		{"lowered and set to the same", first.then(2, 20).then(2, 30), want{20, 3, 20}},
		{"a high one, long ago, and a lower one since", first.then(9, 20).then(4, 30).then(6, 40).then(5, 50), want{50, 9, 50}},
		{"set by hand over something", byHand, want{10, math.MaxInt32, 10}},
		{"made by hand", setting{Limit{MaxLeases: 3}, kinds.Config{Changed: 10}}, want{}},
		{"made by hand and lowered", setting{Limit{MaxLeases: 3}, kinds.Config{Changed: 10}}.then(2, 20), want{20, 3, 20}},
		{"made by hand and set by hand", setting{Limit{MaxLeases: 3}, kinds.Config{Changed: 10, Version: 1}}, want{10, math.MaxInt32, 10}},
		{"edited by hand", setting{Limit{MaxLeases: 3, Version: 1}, kinds.Config{Changed: 10, Version: 2}}, want{10, math.MaxInt32, 10}},
		{"taken away by hand, and set", setting{Limit{MaxLeases: 3}, kinds.Config{Changed: 10, Version: 2}}.then(3, 20), want{10, math.MaxInt32, 10}},
		{"by Resize after by hand", byHand.then(4, 20), want{10, math.MaxInt32, 10}},
		{"lowered after by hand", byHand.then(2, 20), want{20, math.MaxInt32, 20}},
	} {
		t.Run(c.what, func(t *testing.T) {
			by, from := c.is.limit.Tightened(c.is.config)
			if d := cmp.Diff(c.want, want{by, from, c.is.limit.LastLowered(c.is.config)}, cmp.AllowUnexported(want{})); d != "" {
				t.Errorf("%+v: %s", c.is, d)
			}
		})
	}
}

// However often the limit is changed, the data tells when the last higher limit ended, or a later time. It allows
// everything that any of the higher limits has allowed, and stays small.
func TestPastProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []int{rapid.IntRange(1, 40).Draw(t, "first")}
		now := setting{FirstLimit(all[0]), kinds.Config{Changed: 0, Version: 1}}
		for i, most := range rapid.SliceOfN(rapid.IntRange(1, 40), 1, 80).Draw(t, "limits") {
			now = now.then(most, int64(i+1))
			all = append(all, most)
		}
		var by int64
		from := 0
		for i, was := range all[:len(all)-1] {
			if was > now.limit.MaxLeases {
				by, from = int64(i+1), max(from, was)
			}
		}
		gotBy, gotFrom := now.limit.Tightened(now.config)
		if gotBy < by || gotFrom < from || by == 0 && gotBy != 0 {
			t.Fatalf("%v: tightened by %d from %d, want %d and %d", all, gotBy, gotFrom, by, from)
		}
		if len(now.limit.Former) <= maxFormer-1 && gotBy != by {
			t.Fatalf("%v: tightened by %d, want %d", all, gotBy, by)
		}
		if n := len(now.limit.Former); n > maxFormer {
			t.Fatalf("%d former limits", n)
		}
	})
}
