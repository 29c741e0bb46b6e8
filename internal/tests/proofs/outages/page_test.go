package outages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// The whole tables are on a page of their own. The page for users has the rows of the library's own intervals.
const (
	measured    = "../../../../docs/measured/outages.md"
	performance = "../../../../docs/performance.md"
)

const aboutOutages = `How many of %d sessions are lost in an outage. Each session has a timeout of %v and holds a lock. All
connections are reset at once, and all dials are refused until the outage is over. The ensemble is three
in-process servers with a tick of %v, in virtual time ([internal/tests/proofs/outages](../../internal/tests/proofs/outages)).

`

func writeOutages(t *testing.T, table map[knowledge][]endured) {
	t.Helper()
	for _, k := range []knowledge{told, learned, unknown} {
		if raceEnabled || t.Failed() || len(table[k]) != len(outages) {
			t.Fatal("not written: -write is for all of TestOutages, passed, and without -race")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, aboutOutages, sessions(), seconds(defaultTimeout), seconds(tick))
	row(&b, "outage", "lost, tick told", "lost, tick learned (default)", "lost, tick unknown")
	rule(&b, 4)
	for i, d := range outages {
		row(&b, seconds(d), table[told][i].lost, table[learned][i].lost, table[unknown][i].lost)
	}
	section(t, measured, "outages", b.String())
}

const aboutIntervals = `The next table is the one from which the intervals of heartbeats were chosen. A session that holds a lock
sends several rounds of heartbeats in a timeout; a round is a sync and then a write. Each row is a build
with another number of rounds, and the library's own number is bold. Writes and requests are what one
session sends in one timeout while it holds a lock. The last two columns show the longest outage, and
the slowest commits over %g minutes, in which none of %d sessions was lost, in steps of %v. The first
number is for a tick of %v that the manager was told or has learned, the second for an unknown tick.

`

func writeIntervals(t *testing.T, table []interval) {
	t.Helper()
	if raceEnabled || t.Failed() || len(table) == 0 {
		t.Fatal("not written: -write is for all of TestIntervals, passed, and without -race")
	}
	var b strings.Builder
	fmt.Fprintf(&b, aboutIntervals, rowTime.Minutes(), rowSessions, seconds(rowStep), seconds(tick))
	row(&b, "timeout", "rounds", "writes", "requests", "longest outage", "slowest commits")
	rule(&b, 6)
	for _, r := range inOrder(table) {
		n := fmt.Sprint(r.Rounds)
		if r.Rounds == rounds(t) {
			n = "**" + n + "**"
		}
		row(&b, seconds(r.Timeout), n, fmt.Sprintf("%.1f", r.Writes), fmt.Sprintf("%.1f", r.Requests), pair(r.Outage), pair(r.Commit))
	}
	section(t, measured, "intervals", b.String())
	section(t, performance, "timeouts", timeouts(t, table))
}

// timeouts returns the table of what the library's own sessions survive.
func timeouts(t *testing.T, table []interval) string {
	t.Helper()
	var b strings.Builder
	row(&b, "timeout", "longest outage", "slowest commits", "longest outage, tick unknown", "slowest commits, tick unknown")
	rule(&b, 5)
	for _, r := range inOrder(table) {
		if r.Rounds == rounds(t) {
			row(&b, seconds(r.Timeout), seconds(r.Outage[0]), seconds(r.Commit[0]), seconds(r.Outage[1]), seconds(r.Commit[1]))
		}
	}
	return b.String()
}

// inOrder returns the rows of shorter timeouts first.
func inOrder(table []interval) []interval {
	return slices.SortedStableFunc(slices.Values(table), func(a, b interval) int { return cmp.Compare(a.Timeout, b.Timeout) })
}

func pair(d [2]time.Duration) string {
	return seconds(d[0]) + ", " + seconds(d[1])
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

func row(b *strings.Builder, cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %v ", c)
	}
	b.WriteString("|\n")
}

func rule(b *strings.Builder, columns int) {
	b.WriteString("| --- " + strings.Repeat("| ---: ", columns-1) + "|\n")
}

func section(t *testing.T, page, name, text string) {
	t.Helper()
	if err := report.Section(page, name, text); err != nil {
		t.Error(err)
	}
}
