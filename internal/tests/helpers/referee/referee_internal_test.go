package referee

import "testing"

func TestReferee(t *testing.T) {
	one, three := Place{Path: "/one", Capacity: 1}, Place{Path: "/three", Capacity: 3}
	yes := func() bool { return true }
	no := func() bool { return false }
	for _, c := range []struct {
		what   string
		fouls  int
		happen func(*Referee)
	}{
		{"one after the other", 0, func(r *Referee) {
			a := &Hold{Place: one, Weight: 1, Held: yes}
			r.Enter(a)
			r.Leave(a)
			r.Enter(&Hold{Place: one, Weight: 1, Held: yes})
		}},
		{"two at once", 1, func(r *Referee) {
			r.Enter(&Hold{Place: one, Weight: 1, Held: yes})
			r.Enter(&Hold{Place: one, Weight: 1, Held: yes})
		}},
		{"after one that was lost", 0, func(r *Referee) {
			r.Enter(&Hold{Place: one, Weight: 1, Held: no})
			r.Enter(&Hold{Place: one, Weight: 1, Held: yes})
		}},
		{"one that is lost by now", 0, func(r *Referee) {
			r.Enter(&Hold{Place: one, Weight: 1, Held: yes})
			r.Enter(&Hold{Place: one, Weight: 1, Held: no})
		}},
		{"two places", 0, func(r *Referee) {
			r.Enter(&Hold{Place: one, Weight: 1, Held: yes})
			r.Enter(&Hold{Place: three, Weight: 3, Held: yes})
		}},
		{"as much as there is", 0, func(r *Referee) {
			r.Enter(&Hold{Place: three, Weight: 2, Held: yes})
			r.Enter(&Hold{Place: three, Weight: 1, Held: yes})
		}},
		{"more than there is", 1, func(r *Referee) {
			r.Enter(&Hold{Place: three, Weight: 2, Held: yes})
			r.Enter(&Hold{Place: three, Weight: 2, Held: yes})
		}},
		{"beside one whose session is being ended", 0, func(r *Referee) {
			r.Enter(&Hold{Place: one, Who: "a", Weight: 1, Held: yes})
			r.Forgive("a")
			r.Enter(&Hold{Place: one, Who: "b", Weight: 1, Held: yes})
		}},
		{"by one whose session is being ended", 0, func(r *Referee) {
			r.Enter(&Hold{Place: one, Who: "b", Weight: 1, Held: yes})
			r.Forgive("a")
			r.Enter(&Hold{Place: one, Who: "a", Weight: 1, Held: yes})
		}},
		{"by one whose session was", 1, func(r *Referee) {
			r.Forgive("a")
			r.Trust("a")
			r.Enter(&Hold{Place: one, Who: "b", Weight: 1, Held: yes})
			r.Enter(&Hold{Place: one, Who: "a", Weight: 1, Held: yes})
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := New()
			c.happen(r)
			if _, fouls, _ := r.Result(); len(fouls) != c.fouls {
				t.Errorf("fouls %q, want %d", fouls, c.fouls)
			}
		})
	}
}
