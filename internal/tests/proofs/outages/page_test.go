package outages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

const performance = "../../../../docs/performance.md"

const aboutOutages = `How many of %d sessions are lost in an outage. Each session has a timeout of %v and holds a lock. All
connections are reset at once, and all dials are refused until the outage is over. The ensemble is three
in-process servers with a tick of %v, in virtual time ([internal/tests/proofs/outages](../internal/tests/proofs/outages)).

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
	section(t, "outages", b.String())
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
	for _, timeout := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		for _, r := range table {
			if r.Timeout != timeout {
				continue
			}
			n := fmt.Sprint(r.Rounds)
			if r.Rounds == rounds(t) {
				n = "**" + n + "**"
			}
			row(&b, seconds(timeout), n, fmt.Sprintf("%.1f", r.Writes), fmt.Sprintf("%.1f", r.Requests), pair(r.Outage), pair(r.Commit))
		}
	}
	section(t, "intervals", b.String())
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

func section(t *testing.T, name, text string) {
	t.Helper()
	if err := report.Section(performance, name, text); err != nil {
		t.Error(err)
	}
}
