package clockmodel

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// usual is the value that a length has in a printed schedule, if it can have it. Where it cannot, the
// schedule says so.
type usual struct{ length, value, otherwise string }

// usuals are those of ZooKeeper's default tick of 2 s, and of this module's default timeout of 10 s.
var usuals = []usual{
	{"timeout", "10.0", "the client counts by a timeout of %s"},
	{"margin", "1.0", "the margin is %s"},
	{"granted", "10.0", "the leader counts by a timeout of %s, and the client by 10 s"},
	{"timeoutTakes", "10.0", "the timeout takes the leader %s of the client's clock"},
	{"unseen", "0.0", "the machine is suspended for %s, which the client's clock does not show"},
	{"half", "1.0", "the client takes %s for half a tick"},
	{"trueHalf", "1.0", "half a tick is %s"},
	{"halfTakes", "1.0", "half a tick takes %s by the client's clock"},
	{"h", "1.02", "h is %s"},
	{"g", "0.1", "g is %s"},
}

// printed returns a schedule that a person can read: the events in the order of their times.
func (p problem) printed(tb testing.TB, m model) string {
	tb.Helper()
	var b strings.Builder
	for _, l := range p.lengths {
		if l.when == "" || m[l.when] == "true" {
			fmt.Fprintf(&b, "    %s %s\n", l.text, short(m.seconds(tb, l.at)))
		}
	}
	for _, u := range usuals {
		if len(p.events) == 0 || !slices.Contains(p.reals, u.length) {
			continue
		}
		if usual, _ := new(big.Rat).SetString(u.value); m.seconds(tb, u.length).Cmp(usual) != 0 {
			fmt.Fprintf(&b, "    "+u.otherwise+"\n", short(m.seconds(tb, u.length)))
		}
	}
	type line struct {
		at   *big.Rat
		text string
	}
	var lines []line
	for _, e := range p.events {
		if e.when == "" || m[e.when] == "true" {
			lines = append(lines, line{m.seconds(tb, e.at), e.text})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Cmp(b.at) })
	for _, l := range lines {
		at, _ := new(big.Rat).Sub(l.at, lines[0].at).Float64()
		fmt.Fprintf(&b, "    t=%5.2f s  %s\n", at, l.text)
	}
	return b.String()
}

func short(r *big.Rat) string {
	return strings.TrimRight(strings.TrimRight(r.FloatString(3), "0"), ".") + " s"
}

// harm says that a client counts on its session after another client got its lock.
var harm = "(not " + endsFirst("F.sent", "now") + ")"

// wishes returns what makes a schedule of the problem easy to read. A wish that would leave no schedule is
// not granted.
func (p problem) wishes() []string {
	if !slices.Contains(p.reals, "W.sent") {
		return []string{
			"(= timeout 10.0)", "isLearned", "(= minimum 4.0)", "(= tick 2.0)", "(= tick 4.0)", "(= tickTold tick)", "(= h 1.0)",
		}
	}
	viaFollower := slices.Contains(p.reals, "R.sent")
	wishes := []string{harm, "(<= now 40.0)", "(<= F.answered W.sent)"}
	if viaFollower {
		wishes = append(wishes, "(<= F.answered R.sent)", "(<= R.sent R.answered W.sent)")
	}
	wishes = append(wishes, "sameLeader", "(not newLeader)")
	for _, u := range usuals {
		if slices.Contains(p.reals, u.length) {
			wishes = append(wishes, "(= "+u.length+" "+u.value+")")
		}
	}
	// If a length cannot be as usual, it is one of these.
	wishes = append(wishes, "(<= margin 1.0)", "(= margin 0.05)", "(= granted 6.0)", "(= timeoutTakes granted)",
		"(= timeoutTakes 8.0)", "(= unseen 3.0)")
	if viaFollower {
		wishes = append(wishes, "(= h half)", "(= h 0.0)", "(= trueHalf 2.0)",
			"(= halfTakes trueHalf)", "(= halfTakes 1.02)", "(= halfTakes 1.5)",
			"(<= R.answered (- W.sent 0.0))", "(<= W.sent (+ R.answered 0.2))",
			"(not overdue)", "(= pingB.queued (+ pingA.queued halfTakes))", "(not onE)", "(not onA)", "(not onB)")
	}
	wishes = append(wishes, soon("F.sent", "F.noted"), soon("F.noted", "F.answered"),
		soon("W.sent", "W.forwarded"), soon("W.forwarded", "W.taken"), soon("W.taken", "W.answered"))
	if viaFollower {
		wishes = append(wishes, soon("R.sent", "R.leader"), soon("R.leader", "R.passed"), soon("R.passed", "R.answered"),
			soon("pingA.queued", "listA.made"), soon("pingB.queued", "listB.made"))
		for _, list := range []string{"listA", "listB", "listE"} {
			wishes = append(wishes, soon(list+".made", list+".left"), soon("W.forwarded", list+".left"),
				soon(list+".left", list+".taken"))
		}
	}
	return append(wishes, "(= now (+ expired 0.05))", "(<= F.sent 8.0)", "(= F.sent 5.0)")
}

// soon says that one thing comes 20 ms after another.
func soon(first, second string) string { return fmt.Sprintf("(= %s (+ %s 0.02))", second, first) }
