//go:build linux

package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// outcome is the result of an attack on a contestant.
type outcome struct {
	name         string
	target       *target
	seed         uint64
	timeout      time.Duration // of sessions
	length       time.Duration
	rounds       int
	acquisitions int
	violations   []string // two holders at once
	faults       []string // of the other checks
	meanwhile    string   // see verdict
	undecided    int      // pieces of a history that took the checker too long
	stale        int      // writes the register refused
	orphans      int
	stalls       int             // rounds after which somebody was not served
	served       []time.Duration // after healing, until everybody was; of the other rounds
}

func (o *outcome) fault(format string, args ...any) {
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// judge checks the journal.
func (o *outcome) judge(t *testing.T, deaths map[lifeID]int64, kills int) {
	t.Helper()
	events, err := readJournal(o.target.journal, kills)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.What == eventGot {
			o.acquisitions++
		}
	}
	all := spans(events, deaths)
	if dir := os.Getenv(historyEnv); dir != "" {
		if err := writeHistories(dir, o.name, all); err != nil {
			t.Error(err)
		}
	}
	v := o.target.judge(events, all, deaths)
	r := o.target.register
	register, undecided := linearizable(registerHistory(events, r.writes), registerState{}, registerModel, afterRegister)
	o.violations = v.violations
	o.faults = slices.Concat(o.faults, refusedHolders(events), disorder(events),
		strangers(events), groundless(events, deaths, o.timeout), unorderedWrites(r.writes),
		prefix("lock: ", v.illegal), prefix("register: ", register))
	o.undecided = v.undecided + undecided
	o.meanwhile = v.meanwhile
	o.stale = r.stale
	t.Logf("%s: %d events, %d holds seen, %d kills of workers, %d writes", o.name, len(events), len(all), kills, len(r.writes))
}

func prefix(with string, all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = with + s
	}
	return out
}

// log prints the outcome in full, without repetitions.
func (o *outcome) log(t *testing.T) {
	t.Helper()
	const most = 10
	for _, list := range [][]string{o.violations, o.faults} {
		for i, f := range list {
			if i == most {
				t.Logf("%s: … %d in all", o.name, len(list))
				break
			}
			t.Logf("%s: %s", o.name, f)
		}
	}
	if o.meanwhile != "" {
		t.Logf("%s: %s", o.name, o.meanwhile)
	}
	median, longest := o.waits()
	t.Logf("%s, seed %d: %d rounds in %v, %d acquisitions; %d violations, %d other faults, %d pieces undecided; "+
		"%d stale writes refused, %d orphans; everybody served after healing within %v (median), %v (longest), %d of %d within two timeouts, %d stalls",
		o.name, o.seed, o.rounds, o.length.Round(time.Second), o.acquisitions, len(o.violations), len(o.faults), o.undecided,
		o.stale, o.orphans, median, longest, o.within(2*o.timeout), o.rounds, o.stalls)
}

func (o *outcome) waits() (median, longest time.Duration) {
	if len(o.served) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(o.served))
	return sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond)
}

func (o *outcome) within(d time.Duration) int {
	n := 0
	for _, s := range o.served {
		if s <= d {
			n++
		}
	}
	return n
}

// table returns the table for docs/measured/nemesis.md.
func table(all []*outcome, p pace) string {
	var b strings.Builder
	fmt.Fprintf(&b, `Three servers and five worker processes, with sessions of %v. Each library is attacked by the schedule of
one seed, all of its locks at once. A violation is a hold that began while another process that it
excludes said that it held, when it was asked before and after. At a semaphore it is a hold with which
more was held than the limit. Other faults are tokens out of order, holders that went on after the
register had refused them, and histories that are not linearizable. A stale write comes from a writer
that has lost the lock since it last checked, or does not know it yet; fencing tokens are for that. An
orphan is a node that stays while its owner's session lives and nothing waits with it. A stall is a
round after which a worker had not been served %v after all was healed. The times are those of the
other rounds.

| lock | seed | length | rounds | acquisitions | violations | other faults | stale writes refused | orphans | stalls | served after healing: median, longest |
|---|---|---|---|---|---|---|---|---|---|---|
`, p.timeout, p.stall())
	for _, o := range all {
		median, longest := o.waits()
		waits := fmt.Sprintf("%.2f s, %.2f s", median.Seconds(), longest.Seconds())
		if len(o.served) == 0 {
			waits = "never"
		}
		fmt.Fprintf(&b, "| %s | %d | %v | %d | %d | %d | %d | %d | %d | %d | %s |\n", o.name, o.seed, o.length.Round(time.Second),
			o.rounds, o.acquisitions, len(o.violations), len(o.faults), o.stale, o.orphans, o.stalls, waits)
	}
	for _, o := range all {
		if o.meanwhile != "" {
			fmt.Fprintf(&b, "\nMeanwhile there were %s (%s).\n", o.meanwhile, o.name)
		}
	}
	return b.String()
}

// addAttack adds the row of an attack to docs/measured/long.md: all locks at once.
func addAttack(all []*outcome, p pace) error {
	var locks []string
	acquisitions, violations, faults, undecided, orphans, stalls := 0, 0, 0, 0, 0, 0
	for _, o := range all {
		locks = append(locks, o.name)
		acquisitions += o.acquisitions
		violations += len(o.violations)
		faults += len(o.faults)
		undecided += o.undecided
		orphans += o.orphans
		stalls += o.stalls
	}
	one := all[0]
	return report.AddRow(filepath.Join("..", "..", "..", "..", "docs", "measured", "long.md"), "attacks", report.Row{
		{Column: "tick", Value: fmt.Sprint("each ", p.tick)}, {Column: "seed", Value: fmt.Sprintf("no. %d", one.seed)},
		{Column: "locks", Value: strings.ReplaceAll(strings.Join(locks, ", "), "turnstile, ", "")}, {Column: "length", Value: one.length.Round(time.Second)},
		{Column: "rounds", Value: one.rounds}, {Column: "acquisitions", Value: acquisitions},
		{Column: "violations", Value: violations}, {Column: "other faults", Value: faults},
		{Column: "undecided", Value: undecided}, {Column: "orphans", Value: orphans}, {Column: "stalls", Value: stalls},
	})
}
