package mutants

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
)

// operation changes what a function, or another declaration, consists of.
type operation func(s *source, in ast.Node) error

// place is an expression, and where it stands.
type place struct {
	role role
	of   ast.Node  // what has it: the function that is called, or what is assigned to
	at   *ast.Expr // may be set
	also ast.Node  // what it is about, too: the statement before the condition of an if; or nil
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

func (e expression) String() string {
	text := string(e.role)
	if e.of != "" {
		text += " of " + e.of
	}
	return text + fmt.Sprintf(" %q", e.mentions)
}

// find returns the only expression that is meant.
func (e expression) find(s *source, in ast.Node) (*ast.Expr, error) {
	var found []place
	for _, p := range placesIn(in) {
		if p.role == e.role && (e.of == "" || wordsOf(p.of)[e.of]) && wordsOf(*p.at, p.also).all(e.mentions) {
			found = append(found, p)
		}
	}
	found = smallest(found, func(p place) ast.Node { return *p.at })
	if len(found) != 1 {
		return nil, notOne(s, e, found, func(p place) ast.Node { return *p.at })
	}
	return found[0].at, nil
}

// placesIn returns the expressions of a function that have a role.
func placesIn(in ast.Node) (all []place) {
	ast.Inspect(in, func(n ast.Node) bool {
		add := func(r role, of ast.Node, at *ast.Expr) { all = append(all, place{role: r, of: of, at: at}) }
		switch n := n.(type) {
		case *ast.IfStmt:
			all = append(all, place{isTested, n, &n.Cond, n.Init})
		case *ast.ForStmt:
			if n.Cond != nil {
				add(isTested, n, &n.Cond)
			}
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				c := c.(*ast.CaseClause)
				for i := range c.List {
					if n.Tag == nil {
						add(isTested, n, &c.List[i])
					}
				}
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				add(isTested, n, &n.X)
				add(isTested, n, &n.Y)
			}
		case *ast.CallExpr:
			_, curried := n.Fun.(*ast.CallExpr) // what such a call returns has no name
			for i := range n.Args {
				if !curried {
					add(isArgument, n.Fun, &n.Args[i])
				}
			}
		case *ast.ReturnStmt:
			for i := range n.Results {
				add(isResult, n, &n.Results[i])
			}
		case *ast.KeyValueExpr:
			add(isValue, n.Key, &n.Value)
		case *ast.AssignStmt:
			for i := range n.Rhs {
				add(isValue, n.Lhs[i], &n.Rhs[i])
			}
		case *ast.ValueSpec:
			for i := range n.Values {
				add(isValue, n.Names[i], &n.Values[i])
			}
		}
		return true
	})
	return all
}

// smallest leaves out what contains others.
func smallest[T any](all []T, node func(T) ast.Node) []T {
	return slices.DeleteFunc(slices.Clone(all), func(outer T) bool {
		o := node(outer)
		return slices.ContainsFunc(all, func(inner T) bool {
			i := node(inner)
			return i != o && o.Pos() <= i.Pos() && i.End() <= o.End()
		})
	})
}

func notOne[T any](s *source, what fmt.Stringer, found []T, node func(T) ast.Node) error {
	text := fmt.Sprintf("%v: want one, found %d", what, len(found))
	for _, one := range found {
		text += "\n\t" + s.show(node(one))
	}
	return errors.New(text)
}

// always has a condition hold.
func always(e expression) operation {
	return replaced(e, func(old ast.Expr) ast.Expr { // its names stay in use
		return &ast.ParenExpr{X: &ast.BinaryExpr{X: ast.NewIdent("true"), Op: token.LOR, Y: &ast.ParenExpr{X: old}}}
	})
}

// never has a condition fail.
func never(e expression) operation {
	return replaced(e, func(old ast.Expr) ast.Expr {
		return &ast.ParenExpr{X: &ast.BinaryExpr{X: ast.NewIdent("false"), Op: token.LAND, Y: &ast.ParenExpr{X: old}}}
	})
}

// put puts another expression in the place of one.
func put(e expression, text string) operation {
	return func(s *source, in ast.Node) error {
		other, err := parser.ParseExpr(text)
		if err != nil {
			return err
		}
		return replaced(e, func(old ast.Expr) ast.Expr {
			move(other, old.Pos())
			return other
		})(s, in)
	}
}

// move sets all positions of an expression that comes from another text. It would be printed in odd lines otherwise.
func move(e ast.Expr, to token.Pos) {
	ast.Inspect(e, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		of := reflect.ValueOf(n).Elem()
		for i := range of.NumField() {
			if pos, ok := of.Field(i).Interface().(token.Pos); ok && pos.IsValid() {
				of.Field(i).Set(reflect.ValueOf(to))
			}
		}
		return true
	})
}

func replaced(e expression, by func(old ast.Expr) ast.Expr) operation {
	return func(s *source, in ast.Node) error {
		at, err := e.find(s, in)
		if err == nil {
			*at = by(*at)
		}
		return err
	}
}

// statement says which statement is meant: of those in a list that mention all of the words, the smallest.
type statement []string

func doing(mentions ...string) statement { return mentions }

func (m statement) String() string { return fmt.Sprintf("statement %q", []string(m)) }

// listed is an element of a list of statements.
type listed struct {
	list []ast.Stmt
	i    int
}

func (l listed) node() ast.Node { return l.list[l.i] }

func (m statement) find(s *source, in ast.Node) (listed, error) {
	var found []listed
	for _, list := range listsIn(in) {
		for i, one := range list {
			switch one.(type) {
			case *ast.CaseClause, *ast.CommClause:
				continue
			}
			if wordsOf(one).all(m) {
				found = append(found, listed{list, i})
			}
		}
	}
	found = smallest(found, listed.node)
	if len(found) != 1 {
		return listed{}, notOne(s, m, found, listed.node)
	}
	return found[0], nil
}

func listsIn(in ast.Node) (all [][]ast.Stmt) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			all = append(all, n.List)
		case *ast.CaseClause:
			all = append(all, n.Body)
		case *ast.CommClause:
			all = append(all, n.Body)
		}
		return true
	})
	return all
}

// without leaves a statement out.
func without(m statement) operation {
	return func(s *source, in ast.Node) error {
		at, err := m.find(s, in)
		if err != nil {
			return err
		}
		// Its names stay in use.
		at.list[at.i] = &ast.IfStmt{Cond: ast.NewIdent("false"), Body: &ast.BlockStmt{List: []ast.Stmt{at.list[at.i]}}}
		return nil
	}
}

// swapped changes the order of two statements of one list.
func swapped(m, n statement) operation {
	return func(s *source, in ast.Node) error {
		a, errA := m.find(s, in)
		b, errB := n.find(s, in)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if &a.list[0] != &b.list[0] {
			return fmt.Errorf("%v and %v are not in one list", m, n)
		}
		a.list[a.i], b.list[b.i] = b.list[b.i], a.list[a.i]
		return nil
	}
}

// deaf has a select never receive by the case that mentions words before its colon.
func deaf(mentions ...string) operation {
	return func(s *source, in ast.Node) error {
		var found []*ast.UnaryExpr
		ast.Inspect(in, func(n ast.Node) bool {
			if c, ok := n.(*ast.CommClause); ok && c.Comm != nil && wordsOf(c.Comm).all(mentions) {
				ast.Inspect(c.Comm, func(n ast.Node) bool {
					if e, ok := n.(*ast.UnaryExpr); ok && e.Op == token.ARROW {
						found = append(found, e)
						return false
					}
					return true
				})
			}
			return true
		})
		if len(found) != 1 {
			what := expression{role: "reception", mentions: mentions}
			return notOne(s, what, found, func(e *ast.UnaryExpr) ast.Node { return e })
		}
		// Nobody sends to a nil channel. The names stay in use.
		none, err := parser.ParseFile(token.NewFileSet(), "", "package p; func noChannel[C any](C) (none C) { return }", 0)
		if err != nil {
			return err
		}
		s.tree.Decls = append(s.tree.Decls, none.Decls[0])
		found[0].X = &ast.CallExpr{Fun: ast.NewIdent("noChannel"), Args: []ast.Expr{found[0].X}}
		return nil
	}
}

// both does one operation after another.
func both(all ...operation) operation {
	return func(s *source, in ast.Node) error {
		for _, o := range all {
			if err := o(s, in); err != nil {
				return err
			}
		}
		return nil
	}
}

// changed does an operation. It returns the functions before and after, for people.
func (o operation) changed(s *source, in ast.Node) (was, is string, err error) {
	before := lines(in)
	if err := o(s, in); err != nil {
		return "", "", err
	}
	was, is = difference(before, lines(in))
	return was, is, nil
}

// difference returns the lines that only one of two texts has at its place.
func difference(a, b []string) (was, is string) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return strings.Join(a, "\n"), strings.Join(b, "\n")
}
