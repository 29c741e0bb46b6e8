package referee

import (
	"errors"
	"testing"
)

var (
	one, three = Place{Path: "/one", Capacity: 1}, Place{Path: "/three", Capacity: 3}
	yes        = func() bool { return true }
	no         = func() bool { return false }
)

// enter tells the referee of a hold, and returns the function that gives it up.
func (r *Referee) enter(p Place, who string, weight int, held func() bool) (leave func()) {
	h := &Hold{Place: p, Who: who, Weight: weight, Held: held, View: Now()}
	r.Enter(h)
	return func() { r.Leave(h) }
}

func TestReferee(t *testing.T) {
	for what, c := range map[string]struct {
		fouls  int
		happen func(*Referee)
	}{
		"one after the other":     {0, func(r *Referee) { r.enter(one, "a", 1, yes)(); r.enter(one, "b", 1, yes) }},
		"two at once":             {1, func(r *Referee) { r.enter(one, "a", 1, yes); r.enter(one, "b", 1, yes) }},
		"after one that was lost": {0, func(r *Referee) { r.enter(one, "a", 1, no); r.enter(one, "b", 1, yes) }},
		"one that is lost by now": {0, func(r *Referee) { r.enter(one, "a", 1, yes); r.enter(one, "b", 1, no) }},
		"two places":              {0, func(r *Referee) { r.enter(one, "a", 1, yes); r.enter(three, "b", 3, yes) }},
		"as much as there is":     {0, func(r *Referee) { r.enter(three, "a", 2, yes); r.enter(three, "b", 1, yes) }},
		"more than there is":      {1, func(r *Referee) { r.enter(three, "a", 2, yes); r.enter(three, "b", 2, yes) }},
		"beside one whose session is being ended": {0, func(r *Referee) {
			r.enter(one, "a", 1, yes)
			r.Forgive("a")
			r.enter(one, "b", 1, yes)
		}},
		"by one whose session is being ended": {0, func(r *Referee) {
			r.enter(one, "b", 1, yes)
			r.Forgive("a")
			r.enter(one, "a", 1, yes)
		}},
		"by one whose session was": {1, func(r *Referee) {
			r.Forgive("a")
			r.Trust("a")
			r.enter(one, "b", 1, yes)
			r.enter(one, "a", 1, yes)
		}},
		"one too many by a limit that was lowered": {1, func(r *Referee) {
			l := r.LimitsOf(three)
			r.enter(three, "a", 1, yes)
			l.Change(1)(nil)
			r.enter(three, "b", 1, yes)
		}},
		"one that was let in before": {0, func(r *Referee) {
			l := r.LimitsOf(three)
			r.enter(three, "a", 1, yes)
			late := &Hold{Place: three, Weight: 1, Held: yes, View: Now()}
			l.Change(1)(nil)
			r.Enter(late)
		}},
	} {
		r := New()
		c.happen(r)
		if _, fouls, _ := r.Result(); len(fouls) != c.fouls {
			t.Errorf("%s: fouls %q, want %d", what, fouls, c.fouls)
		}
	}
}

// What the referee goes by where limits change. The first limit is 3.
func TestLimits(t *testing.T) {
	for what, c := range map[string]struct {
		want   int // the highest limit, for what is seen behind it
		happen func(*Limits)
	}{
		"the first":                        {3, func(*Limits) {}},
		"a higher one, while it comes":     {5, func(l *Limits) { l.Change(5) }},
		"a lower one, while it comes":      {3, func(l *Limits) { l.Change(1) }},
		"a lower one":                      {1, func(l *Limits) { l.Change(1)(nil) }},
		"a lower one that may not be":      {3, func(l *Limits) { l.Change(1)(errors.New("no answer")) }},
		"a higher one that may still come": {5, func(l *Limits) { l.Change(5)(errors.New("no answer")) }},
		"a higher one that can come no more": {1, func(l *Limits) {
			l.Change(5)(errors.New("no answer"))
			l.Change(1)(nil)
		}},
		"two at once": {5, func(l *Limits) {
			first, second := l.Change(1), l.Change(5)
			second(nil)
			first(nil)
		}},
		"up and down": {2, func(l *Limits) { l.Change(5)(nil); l.Change(2)(nil) }},
	} {
		l := newLimits(3)
		if c.happen(l); l.since(Now()) != c.want {
			t.Errorf("%s: %d, want %d", what, l.since(Now()), c.want)
		}
	}
}
