package cost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
	"github.com/turnstile-go/turnstile/zktest"
)

// page is the text that goes into docs/measured/cost.md.
type page struct {
	lines   [][]cost // of each lock
	crowds  [][2]crowd
	upkeeps []upkeep
}

// about explains the tables.
const about = `This is what the protocol costs, apart from processors, disks and narrow networks. It comes from a
simulation in virtual time ([internal/tests/proofs/cost](../../internal/tests/proofs/cost)), in which every frame takes %v each
way and nothing else takes any time. Times are in round trips of %v: that is how long a write takes,
and a read. The simulation is a test, which fails when the protocol costs more. Where there are fewer
sessions than contenders, the contenders share them.

## Contenders

All contenders come one after another and wait behind the first ones, which hold the lock. Then the
holders release it, and each of the others releases it as soon as it gets it. Requests and bytes are
those of one acquisition with its release, without heartbeats. Bytes are both ways, of ZooKeeper's
protocol alone. A contender that gets the lock at once sends a create, a listing, a get that watches
its own node (here it holds for long enough), and a delete. A waiter also watches two of the nodes
ahead, and lists once more when the first of these leaves. So only the listings grow with the queue,
and a contender makes two of them at most. With WithLocalHandover all goroutines of a process are one
contender; here there are two processes. At the semaphore all %d holders leave at one instant, and so
do all the next ones. That is the worst case: most of the waiters learn of it a round trip late.

`

const aboutReaders = `
## Readers

All readers come at one instant: first to a free lock, and then while a writer holds it and then leaves.
The readers of one session share their watch on the writer, and few lists among them: while a list is on
its way, those that come take the next one, or the one behind that.

`

const aboutSessions = `
## Sessions

The requests of one session in a minute in which nothing happens. The timeout is 10 s unless the row
says otherwise. All locks of a session share its heartbeats. While the session owns any node, the
heartbeats are pings and, five times in a timeout, a sync and a write. A waiter checks once in a
timeout whether its own node and those that it watches are still there.

`

func (p *page) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, about, oneWay, roundTrip, permits)
	p.contenders(&b)
	b.WriteString(aboutReaders)
	p.readers(&b)
	b.WriteString(aboutSessions)
	p.sessions(&b)
	return b.String()
}

func (p *page) contenders(b *strings.Builder) {
	row(b, "lock", "contenders", "sessions", "requests", "of them writes", "bytes", "listings", "bytes of these",
		"watches of each waiter", "alone: lock and unlock", "hand-over")
	rule(b, 11)
	for i, l := range locks {
		for _, c := range p.lines[i] {
			row(b, l.name, c.takers, c.sessions, number(c.requests), number(c.writes), whole(c.bytes),
				number(c.listings), whole(c.listed), number(c.watches), number(c.alone), number(c.handover()))
		}
	}
}

func (p *page) readers(b *strings.Builder) {
	row(b, "readers", "sessions", "requests", "bytes", "bytes of listings", "until all are in",
		"behind a writer: requests", "until all are in")
	rule(b, 8)
	for _, pair := range p.crowds {
		free, behind := pair[0], pair[1]
		row(b, free.readers, free.sessions, number(free.requests), whole(free.bytes), whole(free.listed),
			number(free.entered), number(behind.requests), number(behind.entered))
	}
}

func (p *page) sessions(b *strings.Builder) {
	row(b, "session", "requests", "of them pings", "syncs", "writes", "reads", "bytes")
	rule(b, 7)
	for _, u := range p.upkeeps {
		row(b, u.what, whole(u.perMinute()), whole(u.perMinute(zktest.OpPing)), whole(u.perMinute(zktest.OpSync)),
			whole(u.writes()), whole(u.perMinute(zktest.OpExists)), whole(u.bytes()))
	}
}

func row(b *strings.Builder, cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %v ", c)
	}
	b.WriteString("|\n")
}

func rule(b *strings.Builder, columns int) {
	b.WriteString("| --- " + strings.Repeat("| ---: ", columns-1) + "|\n")
}

// number formats a number that can be less than ten, and a dash for zero.
func number(f float64) string {
	switch {
	case f == 0:
		return "–"
	case f < 0.1:
		return fmt.Sprintf("%.3f", f)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", f), ".00")
}

func whole(f float64) string { return fmt.Sprintf("%.0f", f) }

// write puts the page into the documentation, if it is complete and all promises are kept.
func (p *page) write(t *testing.T) {
	complete := !raceEnabled && len(p.lines) == len(locks) && len(p.crowds) == len(sizes()) && len(p.upkeeps) > 0
	for _, costs := range p.lines {
		complete = complete && len(costs) == len(sizes())
	}
	if !complete || t.Failed() {
		t.Error("not written: -write is for all of TestScaling, passed, and without -race")
		return
	}
	if err := report.Section("../../../../docs/measured/cost.md", "scaling", p.text()); err != nil {
		t.Error(err)
	}
}
