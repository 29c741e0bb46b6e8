package main

import "testing"

func TestReferee(t *testing.T) {
	one, three := place{path: "/one", capacity: 1}, place{path: "/three", capacity: 3}
	yes := func() bool { return true }
	no := func() bool { return false }
	for _, c := range []struct {
		what   string
		fouls  int
		happen func(*referee)
	}{
		{"one after the other", 0, func(r *referee) {
			a := &hold{place: one, weight: 1, held: yes}
			r.enter(a)
			r.leave(a)
			r.enter(&hold{place: one, weight: 1, held: yes})
		}},
		{"two at once", 1, func(r *referee) {
			r.enter(&hold{place: one, weight: 1, held: yes})
			r.enter(&hold{place: one, weight: 1, held: yes})
		}},
		{"after one that was lost", 0, func(r *referee) {
			r.enter(&hold{place: one, weight: 1, held: no})
			r.enter(&hold{place: one, weight: 1, held: yes})
		}},
		{"one that is lost by now", 0, func(r *referee) {
			r.enter(&hold{place: one, weight: 1, held: yes})
			r.enter(&hold{place: one, weight: 1, held: no})
		}},
		{"two places", 0, func(r *referee) {
			r.enter(&hold{place: one, weight: 1, held: yes})
			r.enter(&hold{place: three, weight: 3, held: yes})
		}},
		{"as much as there is", 0, func(r *referee) {
			r.enter(&hold{place: three, weight: 2, held: yes})
			r.enter(&hold{place: three, weight: 1, held: yes})
		}},
		{"more than there is", 1, func(r *referee) {
			r.enter(&hold{place: three, weight: 2, held: yes})
			r.enter(&hold{place: three, weight: 2, held: yes})
		}},
		{"beside one whose session is being ended", 0, func(r *referee) {
			r.enter(&hold{place: one, who: "a", weight: 1, held: yes})
			r.forgive("a")
			r.enter(&hold{place: one, who: "b", weight: 1, held: yes})
		}},
		{"by one whose session is being ended", 0, func(r *referee) {
			r.enter(&hold{place: one, who: "b", weight: 1, held: yes})
			r.forgive("a")
			r.enter(&hold{place: one, who: "a", weight: 1, held: yes})
		}},
		{"by one whose session was", 1, func(r *referee) {
			r.forgive("a")
			r.trust("a")
			r.enter(&hold{place: one, who: "b", weight: 1, held: yes})
			r.enter(&hold{place: one, who: "a", weight: 1, held: yes})
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newReferee()
			c.happen(r)
			if _, fouls, _ := r.result(); len(fouls) != c.fouls {
				t.Errorf("fouls %q, want %d", fouls, c.fouls)
			}
		})
	}
}
