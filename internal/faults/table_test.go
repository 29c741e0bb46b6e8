package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/report"
)

// table counts what came of the cells.
type table struct {
	faults []fault

	mu    sync.Mutex
	rows  []string
	width map[string]int // steps, by row
	cells map[[2]string]*tally
}

// tally is of one row and one fault.
type tally struct {
	planned, tried, passed int
	kept                   int // in how many our session has survived
	late                   int // see outcome
	slowest                time.Duration
}

func newTable(faults []fault) *table {
	return &table{faults: faults, width: make(map[string]int), cells: make(map[[2]string]*tally)}
}

func (tb *table) row(name string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.rows = append(tb.rows, name)
}

func (tb *table) steps(row string, n int) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.width[row] = n
}

// at is called with the lock held.
func (tb *table) at(row, fault string) *tally {
	key := [2]string{row, fault}
	if tb.cells[key] == nil {
		tb.cells[key] = new(tally)
	}
	return tb.cells[key]
}

func (tb *table) planned(row, fault string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.at(row, fault).planned++
}

func (tb *table) done(row, fault string, out outcome, err error) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	c := tb.at(row, fault)
	c.tried++
	if err != nil {
		return
	}
	c.passed++
	if out.kept {
		c.kept++
	}
	if out.late {
		c.late++
	}
	c.slowest = max(c.slowest, out.fresh)
}

// add returns the sum of two.
func (c tally) add(d tally) tally {
	return tally{
		planned: c.planned + d.planned, tried: c.tried + d.tried, passed: c.passed + d.passed,
		kept: c.kept + d.kept, late: c.late + d.late, slowest: max(c.slowest, d.slowest),
	}
}

func (c tally) String() string {
	if c.tried == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d %v", c.passed, c.tried, c.slowest.Round(time.Millisecond))
}

// publish prints the table. With -write it goes into the documentation, if it is whole.
func (tb *table) publish(t *testing.T) {
	text, whole := tb.text()
	fmt.Print(text)
	if !*write {
		return
	}
	if !whole || t.Failed() {
		t.Error("not written: -write is for the whole matrix, all of it passed")
		return
	}
	if err := report.Section("../../docs/reliability.md", "faults", text); err != nil {
		t.Error(err)
	}
}

// text returns the table, and whether it is whole.
func (tb *table) text() (text string, whole bool) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var b strings.Builder
	head := []string{"lock", "steps"}
	for _, f := range tb.faults {
		head = append(head, f.name)
	}
	line(&b, append(head, "all")...)
	line(&b, slices.Repeat([]string{"---"}, len(head)+1)...)
	columns := make([]tally, len(tb.faults)+1)
	whole = true
	for _, row := range tb.rows {
		cells := []string{row, fmt.Sprint(tb.width[row])}
		var total tally
		for i, f := range tb.faults {
			c := *tb.at(row, f.name)
			whole = whole && c.tried > 0 && c.tried == c.planned
			cells = append(cells, c.String())
			total, columns[i] = total.add(c), columns[i].add(c)
		}
		line(&b, append(cells, total.String())...)
		columns[len(tb.faults)] = columns[len(tb.faults)].add(total)
	}
	sums, kept := []string{"all", ""}, []string{"session survived", ""}
	for _, c := range columns {
		sums, kept = append(sums, c.String()), append(kept, fmt.Sprint(c.kept))
	}
	line(&b, sums...)
	line(&b, kept...)
	fmt.Fprintf(&b, "\nIn %d cells a session was ended by force while its lock was held, and another was in before\n"+
		"the holder had heard of it; where both had fencing tokens, the newer one's was higher.\n", columns[len(tb.faults)].late)
	return b.String(), whole
}

func line(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}
