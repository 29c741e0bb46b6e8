package main

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
		happen func(*limits) (seen int64)
	}{
		{"the first", 3, func(*limits) int64 { return clock() }},
		{"a higher one, while it comes", 5, func(l *limits) int64 {
			l.change(5)
			return clock()
		}},
		{"a lower one, while it comes", 3, func(l *limits) int64 {
			l.change(1)
			return clock()
		}},
		{"a lower one", 1, func(l *limits) int64 {
			l.change(1)(nil)
			return clock()
		}},
		{"a lower one, and seen before", 3, func(l *limits) int64 {
			seen := clock()
			l.change(1)(nil)
			return seen
		}},
		{"a lower one that may not have come", 3, func(l *limits) int64 {
			l.change(1)(unknown)
			return clock()
		}},
		{"a higher one that may still come", 5, func(l *limits) int64 {
			l.change(5)(unknown)
			return clock()
		}},
		{"a higher one that can come no more", 1, func(l *limits) int64 {
			l.change(5)(unknown)
			l.change(1)(nil)
			return clock()
		}},
		{"two at once", 5, func(l *limits) int64 {
			first, second := l.change(1), l.change(5)
			second(nil)
			first(nil)
			return clock()
		}},
		{"up and down", 2, func(l *limits) int64 {
			l.change(5)(nil)
			l.change(2)(nil)
			return clock()
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
	p := place{path: "/sem", capacity: 2}
	yes := func() bool { return true }
	for _, c := range []struct {
		what  string
		late  bool // the second was let in after the limit was lowered
		fouls int
	}{{"before", false, 0}, {"after", true, 1}} {
		t.Run(c.what, func(t *testing.T) {
			r := newReferee()
			l := r.limitsOf(p)
			r.enter(&hold{place: p, weight: 1, held: yes, view: clock()})
			view := clock()
			l.change(1)(nil)
			if c.late {
				view = clock()
			}
			r.enter(&hold{place: p, weight: 1, held: yes, view: view})
			if _, fouls, _ := r.result(); len(fouls) != c.fouls {
				t.Errorf("fouls %q, want %d", fouls, c.fouls)
			}
		})
	}
}
