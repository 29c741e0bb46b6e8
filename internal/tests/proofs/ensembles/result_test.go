package ensembles

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// result is what came of one run of a scenario, or of several.
type result struct {
	runs, faults, grants int
	stall                time.Duration // the longest
	outage               time.Duration // how much of it was an outage
	sessions             int
	lost                 int           // sessions lost, all of them in outages that are too long
	longest              time.Duration // outage
	late                 time.Duration // by how much a goroutine of this process was, at most
	load                 float64       // of the machine, at the end of a run
	made                 string        // the stamp of a row that is written
}

func (r result) String() string {
	return fmt.Sprintf("%d faults, %d grants, longest stall %v, of which %v in an outage; longest outage %v; lost %d of %d sessions; %v late at most; load %.1f",
		r.faults, r.grants, r.stall.Round(time.Millisecond), r.outage.Round(time.Millisecond), r.longest.Round(time.Millisecond), r.lost, r.sessions, r.late.Round(time.Millisecond), r.load)
}

// result judges a run that began to fail at some time.
func (s *site) result(began time.Time) result {
	s.t.Helper()
	all, fouls, _ := s.referee.Result()
	for _, foul := range fouls {
		s.t.Errorf("two holders: %s", foul)
	}
	var servers [][]int
	for _, c := range s.clients {
		servers = append(servers, c.servers)
	}
	outages := s.health.outages(servers...)
	r := result{runs: 1, faults: s.faults, grants: all, sessions: len(s.clients), longest: longest(outages), load: load()}
	worst := s.longestStall(began)
	r.stall = worst.length()
	for _, o := range outages {
		r.outage += worst.common(o)
	}
	r.late = s.health.lateness()
	for _, c := range s.clients {
		r.lost += s.judge(c, r.late > margin)
	}
	r.sessions += r.lost // each made place for another
	return r
}

// longestStall returns the longest time in which no worker got the lock, since the faults began.
func (s *site) longestStall(began time.Time) (worst stretch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := began
	for _, at := range append(slices.Clone(s.grants), time.Now()) {
		if at.Before(began) {
			continue
		}
		if gap := (stretch{last, at}); gap.length() > worst.length() {
			worst = gap
		}
		last = at
	}
	return worst
}

// judge returns how many sessions a client has lost. It is an error unless there was an outage that
// sessions need not survive, or this process was starved: then its own heartbeats were too late.
func (s *site) judge(c *client, starved bool) int {
	s.t.Helper()
	losses := c.losses()
	outages := s.health.outages(c.servers)
	for _, at := range losses {
		if !slices.ContainsFunc(outages, func(o stretch) bool { return excuses(o, at) }) {
			report := s.t.Errorf
			if starved {
				report = s.t.Logf
			}
			report("%s lost its session at %s, in no outage of more than %v (starved: %v):%s\noutages:%s",
				c.name, at.Format("15:04:05.000"), survivable, starved, c.story(), describe(outages))
		}
	}
	return len(losses)
}

// excuses reports whether an outage explains that a session was lost at some time. The client can
// hear of its loss a moment after the outage.
func excuses(o stretch, lost time.Time) bool {
	return o.length() > survivable && !lost.Before(o.from) && lost.Before(o.to.Add(timeout))
}

func longest(all []stretch) (d time.Duration) {
	for _, s := range all {
		d = max(d, s.length())
	}
	return d
}

func describe(all []stretch) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "\n\t%s, %v", s.from.Format("15:04:05.000"), s.length().Round(time.Millisecond))
	}
	return b.String()
}

// table holds the results of all scenarios, in order.
type table struct {
	names []string
	rows  map[string]result
}

var results = &table{rows: make(map[string]result)}

func (tb *table) add(name string, r result) {
	old, known := tb.rows[name]
	if !known {
		tb.names = append(tb.names, name)
	}
	if r.stall < old.stall {
		r.stall, r.outage = old.stall, old.outage
	}
	tb.rows[name] = result{
		runs: old.runs + r.runs, faults: old.faults + r.faults, grants: old.grants + r.grants,
		stall: r.stall, outage: r.outage, longest: max(old.longest, r.longest),
		sessions: old.sessions + r.sessions, lost: old.lost + r.lost, late: max(old.late, r.late), load: max(old.load, r.load),
	}
}

const about = `Each run has three servers of its own (and an observer in two scenarios), with a tick of %v, and %d clients with
sessions of %v. %d of them take one lock in turn, each for %v. The others hold further locks for %v to %v. An *outage*
is a time in which no leader serves, no majority does, or none of the servers that some client may connect to. A
*stall* is a time in which none of the %d gets the lock. The longest is listed, and how much of it was an outage. The
next column has the sessions that were lost in outages of more than %v. No other session was lost, and no two clients
held a lock at once. The next column is the load of the machine, which had %d processors: the higher it is, the longer
servers take to start. Scenarios are run one by one, so each row says when it was made.

`

const head = `| scenario | runs | faults | grants | longest outage | longest stall | of that in an outage | sessions lost | load | made |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
`

// text returns the table with the rows of an older one whose scenarios have not been run.
func (tb *table) text(old string) string {
	var b strings.Builder
	fmt.Fprintf(&b, about, tick, workers+held*holders, timeout, workers, workFor, leastHold, mostHold, workers, survivable, runtime.NumCPU())
	b.WriteString(head)
	_, rows, _ := strings.Cut(old, head)
	names := slices.Clone(tb.names)
	for row := range strings.Lines(rows) {
		cell, _, ok := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		if r, again := tb.rows[cell]; again {
			b.WriteString(r.row(cell))
			names = slices.DeleteFunc(names, func(name string) bool { return name == cell })
		} else if ok {
			b.WriteString(row)
		} else {
			break
		}
	}
	for _, name := range names {
		b.WriteString(tb.rows[name].row(name))
	}
	return b.String()
}

func (r result) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %s | %s | %s | %d of %d | %.0f | %s |\n",
		name, r.runs, r.faults, r.grants, seconds(r.longest), seconds(r.stall), seconds(r.outage), r.lost, r.sessions, r.load, r.made)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

const page = "../../../../docs/measured/ensembles.md"

// TestWrite comes last. It writes the rows of the scenarios that were run.
func TestWrite(t *testing.T) {
	t.Logf("\n%s", results.text(""))
	for name, r := range results.rows {
		longtest.Covered(t, "%s: %d faults, %d grants", name, r.faults, r.grants)
	}
	if !*writeFlag {
		return
	}
	if len(results.rows) == 0 {
		t.Fatal("not written: no scenario has passed")
	}
	for name, r := range results.rows {
		if r.late > margin {
			t.Fatalf("not written: this process ran %v late in %q: the machine is too busy", r.late, name)
		}
	}
	now, err := report.Now(filepath.Dir(page))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range results.rows {
		r.made = now.String()
		results.rows[name] = r
	}
	old, err := os.ReadFile(page)
	if err == nil {
		err = report.Section(page, "ensembles", results.text(string(old)))
	}
	if err != nil {
		t.Error(err)
	}
}
