package referee

import (
	"errors"
	"testing"
)

// What the referee goes by where limits change.
func TestLimits(t *testing.T) {
	unknown := errors.New("no answer")
	for _, c := range []struct {
		what   string
		want   int // the highest limit, for what was seen last
		happen func(*Limits) (seen int64)
	}{
		{"the first", 3, func(*Limits) int64 { return Now() }},
		{"a higher one, while it comes", 5, func(l *Limits) int64 {
			l.Change(5)
			return Now()
		}},
		{"a lower one, while it comes", 3, func(l *Limits) int64 {
			l.Change(1)
			return Now()
		}},
		{"a lower one", 1, func(l *Limits) int64 {
			l.Change(1)(nil)
			return Now()
		}},
		{"a lower one, and seen before", 3, func(l *Limits) int64 {
			seen := Now()
			l.Change(1)(nil)
			return seen
		}},
		{"a lower one that may not have come", 3, func(l *Limits) int64 {
			l.Change(1)(unknown)
			return Now()
		}},
		{"a higher one that may still come", 5, func(l *Limits) int64 {
			l.Change(5)(unknown)
			return Now()
		}},
		{"a higher one that can come no more", 1, func(l *Limits) int64 {
			l.Change(5)(unknown)
			l.Change(1)(nil)
			return Now()
		}},
		{"two at once", 5, func(l *Limits) int64 {
			first, second := l.Change(1), l.Change(5)
			second(nil)
			first(nil)
			return Now()
		}},
		{"up and down", 2, func(l *Limits) int64 {
			l.Change(5)(nil)
			l.Change(2)(nil)
			return Now()
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLimits(3)
			if got := l.since(c.happen(l)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// One too many by a limit that was lowered is a foul, and one that was let in before is none.
func TestRefereeOfLimits(t *testing.T) {
	p := Place{Path: "/sem", Capacity: 2}
	yes := func() bool { return true }
	for _, c := range []struct {
		what  string
		late  bool // the second was let in after the limit was lowered
		fouls int
	}{{"before", false, 0}, {"after", true, 1}} {
		t.Run(c.what, func(t *testing.T) {
			r := New()
			l := r.LimitsOf(p)
			r.Enter(&Hold{Place: p, Weight: 1, Held: yes, View: Now()})
			view := Now()
			l.Change(1)(nil)
			if c.late {
				view = Now()
			}
			r.Enter(&Hold{Place: p, Weight: 1, Held: yes, View: view})
			if _, fouls, _ := r.Result(); len(fouls) != c.fouls {
				t.Errorf("fouls %q, want %d", fouls, c.fouls)
			}
		})
	}
}
