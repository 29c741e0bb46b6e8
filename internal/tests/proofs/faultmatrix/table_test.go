package faultmatrix

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// table counts the results of the cells.
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
	again                  int // in how many a second fault has struck
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
	if out.again {
		c.again++
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
		kept: c.kept + d.kept, again: c.again + d.again, late: c.late + d.late, slowest: max(c.slowest, d.slowest),
	}
}

func (c tally) String() string {
	if c.tried == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d %v", c.passed, c.tried, c.slowest.Round(time.Millisecond))
}

// legend explains the table.
const legend = `Each lock is taken behind another holder (except in rows that end in -new-path), held and given back,
with a rival behind it. In rows that end in -cancelled it is given up while it waits. The steps of a
lock are its requests, the events of its watches, and the moments in which it waits or holds and nothing is
on its way.
In async, the lock has WithAsyncRelease.
In semaphore-resize, the client that meets the faults raises the limit and lowers it again before it takes its
leases.
In election-resign, the client that meets the faults gives the leadership up by Resign. In election, its
function returns.
Rows that begin with "kept" are of locks with WithLazyRelease, at a path that is there. The client takes
the lock and releases it, and its place is kept. Then it takes the lock again: at once, when the rival
has come and gone (kept-wanted), or when the time of the place is over. In kept-close it closes its
manager instead. In kept-own the place that it keeps is a reader's, and it takes the lock as a writer. In
kept-read two readers share the place, while one of another process comes and goes.
In sasl, the client logs in with SASL (DIGEST-MD5), and clients that do not may not write to the directory
of the lock. In the rows that begin with "resolver", the client asks a resolver (WithResolver) which servers
there are. In resolver-fails, every call but the second fails. In resolver-hangs, every call but the first
hangs for as long as it may. In resolver-moves, the server has another name after each connection, and its
old names lead nowhere. In these four rows the client opens its session through the faults, and its connection
is cut once while it holds the lock. The requests of both handshakes are steps. Where the fault strikes
the first handshake, the session that is opened after it counts as one that has survived.
Each step has met each fault that can strike there once, on a real server, with a session timeout of %v:

- cut-before: the connection is closed, and the server never sees the request;
- cut-after: the connection is closed after the server has carried the request out, and before the reply;
- expire: the session is ended by force;
- pause: the server stands still (SIGSTOP), for half the session timeout, or twice that;
- to-server, to-client: frames in that direction are not delivered, for half the session timeout, or
  twice that.

Each cell checks five things. What the lock reported is what the server has. No two holders hold at
once. Nothing is left, though all sessions stay open. A new client gets the lock when the fault is
over. The session survives cut-before and cut-after. If it does not, the cell is tried again, %d times at
most, because a busy machine can be too slow. The figures are the cells passed of those tried, and the
longest wait of a new client. That wait includes connecting, and the recovery and release of the clients
ahead of it, while dozens of cells run on the same machine.

`

// publish prints the table. With -write it goes into a section of the documentation, if it is whole.
func (tb *table) publish(t *testing.T, section, legend string) {
	text, whole := tb.text()
	fmt.Print(text)
	var all tally
	for _, c := range tb.cells {
		all = all.add(*c)
	}
	longtest.Covered(t, "%d of %d cells of %d traces", all.tried, all.planned, len(tb.rows))
	if !*write {
		return
	}
	if !whole || t.Failed() {
		t.Error("not written: -write is for the whole matrix, all of it passed")
		return
	}
	if err := report.Section("../../../../docs/measured/faults.md", section, legend+text); err != nil {
		t.Error(err)
	}
}

// text returns the table of the rows that were tried, and whether it is complete.
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
	sums := make([]tally, len(tb.faults)+1)
	whole = true
	for _, row := range tb.rows {
		tallies := make([]tally, len(sums))
		for i, f := range tb.faults {
			tallies[i] = *tb.at(row, f.name)
			whole = whole && tallies[i].tried > 0 && tallies[i].tried == tallies[i].planned
			tallies[len(tb.faults)] = tallies[len(tb.faults)].add(tallies[i])
		}
		if tallies[len(tb.faults)].tried == 0 {
			continue
		}
		cells := []string{row, fmt.Sprint(tb.width[row])}
		for i, c := range tallies {
			cells = append(cells, c.String())
			sums[i] = sums[i].add(c)
		}
		line(&b, cells...)
	}
	all := sums[len(tb.faults)]
	if all.tried == 0 {
		return "", false
	}
	last, kept := []string{"all", ""}, []string{"session survived", ""}
	for _, c := range sums {
		last, kept = append(last, c.String()), append(kept, fmt.Sprint(c.kept))
	}
	line(&b, last...)
	line(&b, kept...)
	fmt.Fprintf(&b, "\nIn %d cells a session was ended by force while its lock was held, and the next client got the\n"+
		"lock before the holder had heard of it. Nothing can prevent that. Where both had fencing\n"+
		"tokens, the next client's was higher.\n", all.late)
	if all.again > 0 {
		fmt.Fprintf(&b, "The second fault struck in %d cells. In the others the recovery was over before.\n", all.again)
	}
	return b.String(), whole
}

func line(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}
