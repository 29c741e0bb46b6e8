package referee

import "testing"

func TestReferee(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	first, second := &Hold{"a", 2, yes}, &Hold{"b", 2, yes}
	for what, c := range map[string]struct {
		room   int
		first  func() bool
		second *Hold
		leaves bool
		foul   bool
	}{
		"one after the other":     {2, yes, second, true, false},
		"two at once":             {2, yes, second, false, true},
		"after one that was lost": {2, no, second, false, false},
		"one that is lost by now": {2, yes, &Hold{"b", 2, no}, false, false},
		"as much as there is":     {4, yes, second, false, false},
		"more than there is":      {3, yes, second, false, true},
	} {
		r := &Referee{Room: c.room}
		first.Held = c.first
		if r.Enter(first); c.leaves {
			r.Leave(first)
		}
		if foul := r.Enter(c.second); (foul != "") != c.foul {
			t.Errorf("%s: %q", what, foul)
		}
	}
}
