package mutants

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// operation changes the text of a function, or of another declaration, which has this name.
type operation func(s *source, name string) error

// place is an expression, and where it stands.
type place struct {
	role role
	of   ast.Node // what has it: the function that is called, or what is assigned to
	at   ast.Expr
	also ast.Node // what it is about, too: the statement before the condition of an if; or nil
}

type role string

const (
	isTested   role = "test"     // the condition of an if or a for, a case without a tag, or an operand of && or ||
	isArgument role = "argument" // of a call
	isResult   role = "result"   // that is returned
	isValue    role = "value"    // that is assigned, or that a field of a literal gets
)

// expression says which expression is meant.
type expression struct {
	role     role
	of       string   // a word of what has it; "" for any
	mentions []string // words of the expression
}

// test is a condition, or the part of one, that mentions words: of those that do, the smallest.
func test(mentions ...string) expression { return expression{isTested, "", mentions} }

// argument is an argument of a call of a function that mentions words.
func argument(of string, mentions ...string) expression { return expression{isArgument, of, mentions} }

// result is what a return statement returns, if it mentions words.
func result(mentions ...string) expression { return expression{isResult, "", mentions} }

// value is what a variable or a field is set to, if it mentions words.
func value(of string, mentions ...string) expression { return expression{isValue, of, mentions} }

func (e expression) in(n ast.Node) (found []ast.Node) {
	for _, p := range placesIn(n) {
		if p.role == e.role && (e.of == "" || wordsOf(p.of)[e.of]) && wordsOf(p.at, p.also).all(e.mentions) {
			found = append(found, p.at)
		}
	}
	return found
}

// placesIn returns the expressions of a function that have a role.
func placesIn(in ast.Node) (all []place) {
	ast.Inspect(in, func(n ast.Node) bool {
		add := func(r role, of ast.Node, at ...ast.Expr) {
			for _, one := range at {
				all = append(all, place{role: r, of: of, at: one})
			}
		}
		switch n := n.(type) {
		case *ast.IfStmt:
			all = append(all, place{isTested, n, n.Cond, n.Init})
		case *ast.ForStmt:
			if n.Cond != nil {
				add(isTested, n, n.Cond)
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				if n.Tag == nil {
					add(isTested, n, c.(*ast.CaseClause).List...)
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				add(isTested, n, n.X, n.Y)
			}
		case *ast.CallExpr:
			if _, curried := n.Fun.(*ast.CallExpr); !curried { // what such a call returns has no name
				add(isArgument, n.Fun, n.Args...)
			}
		case *ast.ReturnStmt:
			add(isResult, n, n.Results...)
		case *ast.KeyValueExpr:
			add(isValue, n.Key, n.Value)
		case *ast.AssignStmt:
			for i := range n.Rhs {
				add(isValue, n.Lhs[i], n.Rhs[i])
			}
		case *ast.ValueSpec:
			for i := range n.Values {
				add(isValue, n.Names[i], n.Values[i])
			}
		}
		return true
	})
	return all
}

// statement says which statement is meant: of those in a list that mention all of the words, the smallest.
type statement []string

func doing(mentions ...string) statement { return mentions }

func (m statement) in(n ast.Node) (found []ast.Node) {
	add := func(list []ast.Stmt) {
		for _, one := range list {
			switch one.(type) {
			case *ast.CaseClause, *ast.CommClause:
				continue
			}
			if wordsOf(one).all(m) {
				found = append(found, one)
			}
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			add(n.List)
		case *ast.CaseClause:
			add(n.Body)
		case *ast.CommClause:
			add(n.Body)
		}
		return true
	})
	return found
}

// reception is the channel of a case of a select that mentions words before its colon.
type reception []string

func (r reception) in(n ast.Node) (found []ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && c.Comm != nil && wordsOf(c.Comm).all(r) {
			ast.Inspect(c.Comm, func(n ast.Node) bool {
				e, ok := n.(*ast.UnaryExpr)
				if ok && e.Op == token.ARROW {
					found = append(found, e.X)
				}
				return !ok
			})
		}
		return true
	})
	return found
}

// spot is a place in a declaration, said by meaning.
type spot interface {
	in(n ast.Node) []ast.Node // those that fit
}

// find returns the only node that is meant. What contains others that fit is not.
func find(sp spot, s *source, name string) (ast.Node, error) {
	all := sp.in(s.named(name)[0])
	found := slices.DeleteFunc(slices.Clone(all), func(outer ast.Node) bool {
		return slices.ContainsFunc(all, func(inner ast.Node) bool {
			return inner != outer && outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
		})
	})
	if len(found) == 1 {
		return found[0], nil
	}
	text := fmt.Sprintf("%T %q: want one, found %d", sp, sp, len(found))
	for _, n := range found {
		text += fmt.Sprintf("\n\t%v: %s", s.fset.Position(n.Pos()), s.of(n))
	}
	return nil, errors.New(text)
}

// replaced puts other text in a spot.
func replaced(sp spot, by func(old string) string) operation {
	return func(s *source, name string) error {
		n, err := find(sp, s, name)
		if err != nil {
			return err
		}
		return s.edit(n, by(s.of(n)))
	}
}

// Whatever an operation disables stays in the text, so that its names stay in use.

// always has a condition hold.
func always(e expression) operation {
	return replaced(e, func(old string) string { return "(true || (" + old + "))" })
}

// never has a condition fail.
func never(e expression) operation {
	return replaced(e, func(old string) string { return "(false && (" + old + "))" })
}

// put puts another expression in the place of one.
func put(e expression, text string) operation {
	return replaced(e, func(string) string { return text })
}

// without leaves a statement out.
func without(m statement) operation {
	return replaced(m, func(old string) string { return "if false {\n" + old + "\n}" })
}

// swapped changes the order of two statements.
func swapped(m, n statement) operation {
	return func(s *source, name string) error {
		a, errA := find(m, s, name)
		b, errB := find(n, s, name)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if a.Pos() > b.Pos() {
			a, b = b, a
		}
		return s.edit(span{a.Pos(), b.End()}, s.of(b)+s.of(span{a.End(), b.Pos()})+s.of(a))
	}
}

// span is what there is between two positions.
type span struct{ from, to token.Pos }

func (s span) Pos() token.Pos { return s.from }
func (s span) End() token.Pos { return s.to }

// deaf has a select never receive by the case that mentions words before its colon: nobody sends to a nil channel.
func deaf(mentions ...string) operation {
	return func(s *source, name string) error {
		s.text += "\nfunc noChannel[C any](C) (none C) { return }\n"
		return replaced(reception(mentions), func(old string) string { return "noChannel(" + old + ")" })(s, name)
	}
}

// both does one operation after another.
func both(all ...operation) operation {
	return func(s *source, name string) error {
		for _, o := range all {
			if err := o(s, name); err != nil {
				return err
			}
		}
		return nil
	}
}

// difference returns the lines that only one of two texts has at its place.
func difference(before, after string) (was, is string) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return strings.Join(a, "\n"), strings.Join(b, "\n")
}
