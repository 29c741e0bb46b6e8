package clockmodel

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

// writes says to write the counterexamples into docs/measured/clock.md.
var writes = flag.Bool("write", false, "write the counterexamples into docs/measured/clock.md")

const clockPage = "../../../../docs/measured/clock.md"

// cases are the derivation, by where the client is connected and by what F is.
var cases = []problem{follower, own, moved, half}

// The derivation holds: its conclusions follow from its formulas. The formulas are no contradiction, from
// which everything follows.
func TestTheorem(t *testing.T) {
	longtest.Only(t)
	for _, p := range cases {
		t.Run(p.name, p.follows)
	}
	longtest.Covered(t, "%d cases of the lease clock, proven", len(cases))
}

// follows fails unless the conclusions follow from the formulas, and some schedule obeys these.
func (p problem) follows(t *testing.T) {
	t.Helper()
	enough, ok := p.proven(t)
	if !ok {
		m, _ := p.counterexample(t, p.wishes()...)
		t.Fatalf("not proven:\n%s", p.printed(t, m))
	}
	t.Logf("proven from: %s", strings.Join(enough, ", "))
	if _, ok := p.schedule(t, ""); !ok {
		t.Error("no schedule obeys the formulas, so they prove anything")
	}
}

// Each formula of the derivation is needed: without it, there is a schedule in which a client counts on
// its session after the leader has expired it.
func TestEachFormulaIsNeeded(t *testing.T) {
	longtest.Only(t)
	printed := map[string]bool{}
	var section strings.Builder
	for _, p := range cases {
		t.Run(p.name, func(t *testing.T) { section.WriteString(p.needed(t, printed)) })
	}
	if *writes && !t.Failed() {
		if err := report.Section(clockPage, "counterexamples", section.String()); err != nil {
			t.Error(err)
		}
	}
	longtest.Covered(t, "%d formulas, with a counterexample to the derivation without each of them", len(printed))
}

// needed leaves out each formula in turn, and logs a counterexample, unless one has been printed before. It returns
// those without an assumption.
func (p problem) needed(t *testing.T, printed map[string]bool) string {
	t.Helper()
	var assumptions strings.Builder
	for _, f := range p.formulas {
		if f.kind == cause {
			continue
		}
		less := p.without(f.name)
		if printed[f.name] { // in another case
			if _, ok := less.proven(t); ok {
				t.Errorf("%s is not needed", f.name)
			}
			continue
		}
		m, ok := less.counterexample(t, less.wishes()...)
		if !ok {
			t.Errorf("%s is not needed", f.name)
			continue
		}
		printed[f.name] = true
		if f.kind == assumed {
			fmt.Fprintf(&assumptions, "Without `%s`:\n\n%s\n", f.name, less.printed(t, m))
		}
		t.Logf("without %s (%s: %q):\n%s", f.name, f.kind, f.says, less.printed(t, m))
	}
	return assumptions.String()
}

// The margin of a tenth is enough for a leader whose clock is fast by a ninth, if nothing is late. At a
// fiftieth, it leaves 8 percent of the timeout for threads that are late.
func TestRates(t *testing.T) {
	p := follower.without("leader-not-too-fast")
	for _, c := range []struct {
		takes string // the timeout by the client's clock, in thousandths
		ok    bool
	}{{"900.0", true}, {"899.0", false}} {
		rate := formula{"rate", assumed, "", "(>= (* 1000.0 timeoutTakes) (* " + c.takes + " granted))"}
		if _, ok := p.with(rate).proven(t); ok != c.ok {
			t.Errorf("if the timeout takes %s thousandths of itself, proven is %v", c.takes, ok)
		}
	}
	late := follower
	late.goals = []formula{{"lease-ends-first", rule, "", endsFirst("F.sent", "(+ now (* 0.08 timeout))")}}
	if _, ok := late.proven(t); !ok {
		t.Error("the margin leaves less than 8 percent")
	}
}

// If a list can lose a frame that the server notes as it makes the list, the client counts on the one
// frame in place of the frame before. That does no harm if the frame before was sent a twentieth of the
// timeout earlier, as by a session that owns nodes. A sixth, as by a session that owns nothing, is too
// much for the margin.
func TestLostFrame(t *testing.T) {
	for _, c := range []struct {
		part string
		ok   bool
	}{{"20.0", true}, {"6.0", false}} {
		p := follower.and(problem{ // in which F is the frame before
			reals:    []string{"lost.sent"},
			formulas: []formula{{"sent-before", rule, "", "(<= F.sent lost.sent (+ F.sent (/ timeout " + c.part + ")))"}},
		})
		p.goals = []formula{{"lease-ends-first", rule, "", endsFirst("lost.sent", "now")}}
		if _, ok := p.proven(t); ok != c.ok {
			t.Errorf("with a frame for each %sth of a timeout, proven is %v", c.part, ok)
		}
	}
}
