package ensembles

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// at is a time of an invented run, in seconds.
func at(s float64) time.Time { return time.Unix(0, int64(s*1e9)) }

// What counts as an outage depends on the servers to which a client may connect.
func TestOutages(t *testing.T) {
	const l, f, o, r = "leader", "follower", "observer", "read-only"
	h := &health{voters: 3, modes: make([]string, 4), samples: []sample{
		{at(0), []string{f, l, f, o}},
		{at(1), []string{f, l, "", o}},
		{at(2), []string{"", l, r, o}}, // not known yet to the leader
		{at(3), []string{f, l, "", o}},
		{at(4), []string{f, l, f, o}},
		{at(5), []string{f, "", f, o}},
		{at(6), []string{f, f, f, o}},
		{at(7), []string{f, f, l, o}},
		{at(8), []string{f, f, l, o}}, // it is being asked in vain
	}}
	h.set(3, "", at(7.5))
	for _, c := range []struct {
		what    string
		clients [][]int
		want    []stretch
	}{
		{"any server", [][]int{{0, 1, 2}}, []stretch{{at(2), at(3)}, {at(5), at(7)}}},
		{"one server", [][]int{{2}}, []stretch{{at(1), at(4)}, {at(5), at(7)}}},
		{"one of two", [][]int{{1, 2}}, []stretch{{at(2), at(3)}, {at(5), at(7)}}},
		{"an observer", [][]int{{3}}, []stretch{{at(2), at(3)}, {at(5), at(7)}, {at(8), at(8)}}},
		{"two clients", [][]int{{0}, {2}}, []stretch{{at(1), at(4)}, {at(5), at(7)}}},
	} {
		if got := h.outages(c.clients...); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// Only an outage that sessions need not survive excuses a loss, and only one that the session was in.
func TestExcuses(t *testing.T) {
	long, short := stretch{at(100), at(105)}, stretch{at(100), at(104)}
	for _, c := range []struct {
		what   string
		outage stretch
		lost   float64
		want   bool
	}{
		{"in a long outage", long, 104, true},
		{"soon after it", long, 106, true},
		{"before it", long, 99, false},
		{"long after it", long, 120, false},
		{"in a short outage", short, 103, false},
	} {
		if got := excuses(c.outage, at(c.lost)); got != c.want {
			t.Errorf("a session lost %s: excused %v, want %v", c.what, got, c.want)
		}
	}
}

// A stall begins with a grant, or with the first fault.
func TestStall(t *testing.T) {
	now := time.Now()
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	s := &site{grants: []time.Time{ago(60), ago(50), ago(40), ago(37), ago(32), ago(31), ago(1)}}
	for began, want := range map[int]stretch{
		60: {ago(31), ago(1)},
		20: {ago(20), ago(1)},
	} {
		if got := s.longestStall(ago(began)); got != want {
			t.Errorf("since %d s ago: %v, want %v", began, got, want)
		}
	}
	if got := (stretch{at(1), at(5)}).common(stretch{at(3), at(9)}); got != 2*time.Second {
		t.Errorf("in common: %v, want 2s", got)
	}
	if got := (stretch{at(1), at(5)}).common(stretch{at(6), at(9)}); got != 0 {
		t.Errorf("in common: %v, want nothing", got)
	}
}

// A change to Lost is one lost session. The first change that a subscriber hears is none.
func TestLosses(t *testing.T) {
	c := &client{changes: []session.Change{
		{From: session.Lost, To: session.Lost, At: at(1)},
		{From: session.Suspended, To: session.Lost, At: at(2)},
		{From: session.Connected, To: session.Suspended, At: at(3)},
	}}
	if got := c.losses(); len(got) != 1 || got[0] != at(2) {
		t.Errorf("losses at %v, want one at %v", got, at(2))
	}
}

// Of several runs, the table has the worst stall with its own outage, and the sums of the counts.
func TestTable(t *testing.T) {
	tb := &table{rows: make(map[string]result)}
	for _, stall := range []time.Duration{2, 5, 3} {
		tb.add("a", result{runs: 1, faults: 2, stall: stall, outage: stall / 2, longest: stall, sessions: 14, lost: 1})
	}
	want := result{runs: 3, faults: 6, stall: 5, outage: 2, longest: 5, sessions: 42, lost: 3}
	if got := tb.rows["a"]; got != want || len(tb.names) != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
	tb.add("b", result{runs: 7})
	older := head + "| c | of before |\n| b | of before |\n\n<!-- /ensembles -->\n| d | of another table |\n"
	rows := "| c | of before |\n" + tb.rows["b"].row("b") + tb.rows["a"].row("a")
	if got := tb.text("before\n" + older); !strings.HasSuffix(got, head+rows) {
		t.Errorf("the table is\n%s\nwant its rows to be\n%s", got, rows)
	}
}
