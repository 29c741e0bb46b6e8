package clockmodel

import (
	"bufio"
	"fmt"
	"io"
	"math/big"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// solver is a running z3.
type solver struct {
	tb  testing.TB
	to  io.WriteCloser
	out *bufio.Reader
}

// start starts z3, and gives it a script. It ends with the test.
func start(tb testing.TB, script string) *solver {
	tb.Helper()
	z3, err := exec.LookPath("z3")
	if err != nil {
		testserver.Missing(tb, fmt.Errorf("z3 is missing, which make deps installs: %w", err))
	}
	cmd := exec.Command(z3, "-in")
	to, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s := &solver{tb, to, bufio.NewReader(from)}
	tb.Cleanup(func() {
		_ = to.Close() // which ends it
		_ = cmd.Wait()
	})
	s.say(script)
	return s
}

func (s *solver) say(script string) {
	s.tb.Helper()
	if _, err := io.WriteString(s.to, script); err != nil {
		s.tb.Fatal(err)
	}
}

// ask gives z3 a command, and returns its answer.
func (s *solver) ask(command string) sexpr {
	s.tb.Helper()
	s.say(command + "\n")
	text := ""
	for text == "" || strings.Count(text, "(") > strings.Count(text, ")") {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.tb.Fatalf("z3 ended: %v", err)
		}
		text += line
	}
	answer := parse(text)[0]
	if len(answer.list) > 0 && answer.list[0].atom == "error" {
		s.tb.Fatalf("z3 says %s", answer)
	}
	return answer
}

// possible reports whether a schedule obeys all that was said.
func (s *solver) possible() bool {
	s.tb.Helper()
	answer := s.ask("(check-sat)").atom
	if answer != "sat" && answer != "unsat" {
		s.tb.Fatalf("z3 says %q", answer)
	}
	return answer == "sat"
}

// proven reports whether the goals follow from the formulas, and which of these are enough for it.
func (p problem) proven(tb testing.TB) (enough []string, ok bool) {
	tb.Helper()
	s := start(tb, p.script()+p.refuted())
	if s.possible() {
		return nil, false
	}
	for _, name := range s.ask("(get-unsat-core)").list {
		enough = append(enough, strings.TrimPrefix(name.atom, named))
	}
	slices.Sort(enough)
	return enough, true
}

// model has the values of terms in one schedule.
type model map[string]string

// counterexample returns a schedule that obeys the formulas and breaks a goal. If wishes can be true
// in it, they are. ok is false if there is no schedule.
func (p problem) counterexample(tb testing.TB, wishes ...string) (m model, ok bool) {
	tb.Helper()
	return p.schedule(tb, p.refuted(), wishes...)
}

// schedule returns a schedule that obeys the formulas and a condition.
func (p problem) schedule(tb testing.TB, condition string, wishes ...string) (m model, ok bool) {
	tb.Helper()
	s := start(tb, p.script()+condition)
	if !s.possible() {
		return nil, false
	}
	for _, wish := range wishes { // one after the other: the first are the most wanted
		if s.say("(push)(assert " + wish + ")\n"); !s.possible() {
			s.say("(pop)\n")
		}
	}
	s.possible()
	terms := p.terms()
	m = model{}
	for i, pair := range s.ask("(get-value (" + strings.Join(terms, " ") + "))").list {
		m[terms[i]] = pair.list[1].String()
	}
	return m, true
}

// terms returns the terms whose values a printed schedule needs.
func (p problem) terms() []string {
	terms := append(append([]string(nil), p.reals...), p.bools...)
	for _, e := range append(slices.Clone(p.events), p.lengths...) {
		if e.when != "" {
			terms = append(terms, e.when)
		}
	}
	return terms
}

// seconds returns the value of a real term.
func (m model) seconds(tb testing.TB, term string) *big.Rat {
	tb.Helper()
	v, err := parse(m[term])[0].number()
	if err != nil {
		tb.Fatalf("the value of %s: %v", term, err)
	}
	return v
}

// sexpr is what z3 reads and writes: an atom, or a list in parentheses.
type sexpr struct {
	atom string
	list []sexpr
}

func (s sexpr) String() string {
	if s.atom != "" {
		return s.atom
	}
	all := make([]string, len(s.list))
	for i, one := range s.list {
		all[i] = one.String()
	}
	return "(" + strings.Join(all, " ") + ")"
}

// number returns the number that 1.5, (- 1.5) and (/ 3.0 2.0) are.
func (s sexpr) number() (*big.Rat, error) {
	if s.atom != "" {
		if r, ok := new(big.Rat).SetString(s.atom); ok {
			return r, nil
		}
		return nil, fmt.Errorf("%s is no number", s)
	}
	if len(s.list) < 2 {
		return nil, fmt.Errorf("%s is no number", s)
	}
	first, err := s.list[1].number()
	if err != nil {
		return nil, err
	}
	switch {
	case s.list[0].atom == "-" && len(s.list) == 2:
		return new(big.Rat).Neg(first), nil
	case s.list[0].atom == "/" && len(s.list) == 3:
		second, err := s.list[2].number()
		if err != nil || second.Sign() == 0 {
			return nil, fmt.Errorf("%s is no number", s)
		}
		return new(big.Rat).Quo(first, second), nil
	}
	return nil, fmt.Errorf("%s is no number", s)
}

// parse reads all expressions of a text.
func parse(text string) []sexpr {
	open := []sexpr{{}} // the outermost list has the result
	for _, word := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)) {
		switch last := len(open) - 1; {
		case word == "(":
			open = append(open, sexpr{})
		case word == ")" && last > 0:
			done := open[last]
			open = open[:last]
			open[last-1].list = append(open[last-1].list, done)
		default:
			open[last].list = append(open[last].list, sexpr{atom: word})
		}
	}
	return open[0].list
}
