package clockmodel

import (
	"fmt"
	"strings"
)

// formula is one statement about the events of a case.
type formula struct {
	name string
	kind kind
	says string // words of lease.go
	smt  string // in SMT-LIB
}

type kind int

const (
	cause   kind = iota // no event comes before its cause, and what a name means: true of any world
	rule                // what the client does
	servers             // a fact about the servers, from ZooKeeper's sources
	assumed             // an assumption about this world, which an operator or a user can break
)

func (k kind) String() string {
	return [...]string{"cause", "the client's rule", "a fact about servers", "an assumption"}[k]
}

// event is a line of a printed schedule.
type event struct {
	at   string // the variable with its time
	when string // it happens if this formula is true; "" means always
	text string
}

// problem is a case of the derivation.
type problem struct {
	name     string
	reals    []string // variables: moments, and lengths of time
	bools    []string
	formulas []formula
	goals    []formula // the conclusions
	events   []event
	lengths  []event // the same, with lengths of time for moments
}

// and returns the problem with more of everything.
func (p problem) and(more problem) problem {
	if more.name != "" {
		p.name = more.name
	}
	p.reals = append(append([]string(nil), p.reals...), more.reals...)
	p.bools = append(append([]string(nil), p.bools...), more.bools...)
	p.formulas = append(append([]formula(nil), p.formulas...), more.formulas...)
	p.goals = append(append([]formula(nil), p.goals...), more.goals...)
	p.events = append(append([]event(nil), p.events...), more.events...)
	return p
}

// without returns the problem without the formula of that name.
func (p problem) without(name string) problem {
	var kept []formula
	for _, f := range p.formulas {
		if f.name != name {
			kept = append(kept, f)
		}
	}
	p.formulas = kept
	return p
}

// with returns the problem with one formula more.
func (p problem) with(f formula) problem { return p.and(problem{formulas: []formula{f}}) }

// named is how the names of formulas begin in a script, so that none is that of a variable.
const named = "$"

// script declares the variables and asserts the formulas, each with its name.
func (p problem) script() string {
	var b strings.Builder
	b.WriteString("(set-option :produce-unsat-cores true)\n(set-option :smt.core.minimize true)\n")
	for _, v := range p.reals {
		fmt.Fprintf(&b, "(declare-const %s Real)\n", v)
	}
	for _, v := range p.bools {
		fmt.Fprintf(&b, "(declare-const %s Bool)\n", v)
	}
	for _, f := range p.formulas {
		fmt.Fprintf(&b, "(assert (! %s :named %s%s))\n", f.smt, named, f.name)
	}
	return b.String()
}

// refuted returns the formula that one of the goals is false.
func (p problem) refuted() string {
	all := make([]string, len(p.goals))
	for i, g := range p.goals {
		all[i] = g.smt
	}
	return "(assert (not (and " + strings.Join(all, " ") + ")))\n"
}

// inOrder says that each of the moments comes when the one before it comes, or later.
func inOrder(moments ...string) string { return "(<= " + strings.Join(moments, " ") + ")" }
