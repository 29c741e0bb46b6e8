package scaling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/report"
	"github.com/turnstile-go/turnstile/zktest"
)

// page is what goes into the documentation.
type page struct {
	lines   [][]cost // of each lock
	crowds  [][2]crowd
	upkeeps []upkeep
}

// about explains the tables.
const about = `What the protocol costs, apart from processors, disks and networks that are too narrow: a simulation
in virtual time ([internal/scaling](../internal/scaling)), in which every frame takes %v each way and
nothing else takes any time. Times are in round trips, of %v, which is what a write takes, and a read.
The simulation is a test, which fails when the protocol comes to cost more. Where there are fewer
sessions than contenders these share them.

### Contenders

All come one after another and stand in line behind the first, who hold the lock. Then these give it
back, and each of the others as soon as it is in. Requests and bytes are what one acquisition costs with
its release, without heartbeats; bytes are both ways, of ZooKeeper's protocol alone. One who need not
wait sends a create, a listing, a get that watches its own node, which it holds for long enough here, and
a delete. One who waits also watches two of those ahead, and lists once more when the first of these
leaves. So listings alone grow with the queue, and there are two for each contender, however long it
is. With WithLocalHandover the goroutines of each of two processes are one contender. (At the semaphore all %d leave at one instant,
and so do all the next: the worst case, in which most of those behind learn of it a round trip late.)

`

const aboutReaders = `
### Readers

All readers come at one instant: to a free lock; and while a writer holds it, who then leaves. Those of
one session share their watch on the writer.

`

const aboutSessions = `
### Sessions

What one session sends in a minute in which nothing happens, with a timeout of 10 s unless it says
otherwise. All that a session holds shares its heartbeats. As long as it owns any node, those are pings
and, five times in a timeout, a sync and a write. A waiter looks once in a timeout whether its own node
and those that it watches are still there.

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
		"watches of each who waits", "alone: lock and unlock", "hand-over")
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

// number is for what can be less than ten, with a dash for nothing.
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

// write puts all of it into the documentation, if it is there and as promised.
func (p *page) write(t *testing.T) {
	complete := !raceEnabled && len(p.lines) == len(locks) && len(p.crowds) == len(sizes()) && len(p.upkeeps) > 0
	for _, costs := range p.lines {
		complete = complete && len(costs) == len(sizes())
	}
	if !complete || t.Failed() {
		t.Error("not written: -write is for all of TestScaling, passed, and without -race")
		return
	}
	if err := report.Section("../../docs/performance.md", "scaling", p.text()); err != nil {
		t.Error(err)
	}
}
