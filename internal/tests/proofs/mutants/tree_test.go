package mutants

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// source is a file of a package, as a syntax tree without comments.
type source struct {
	file string
	text []byte
	fset *token.FileSet
	tree *ast.File
}

// sources are files that were parsed, by their paths. Several changes of one file change one tree.
type sources map[string]*source

// declares returns the file that declares a function or a package-level name, and what it declares. A method is named
// (*T).f or T.f, as in a stack trace.
func (all sources) declares(dir, name string) (*source, ast.Node, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	var in *source
	var found ast.Node
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		s := all[file]
		if s == nil {
			if s, err = parse(file); err != nil {
				return nil, nil, err
			}
			all[file] = s
		}
		for _, n := range s.named(name) {
			if found != nil {
				return nil, nil, fmt.Errorf("%s is declared in %s and in %s", name, in.file, file)
			}
			in, found = s, n
		}
	}
	if found == nil {
		return nil, nil, fmt.Errorf("%s has no %s", dir, name)
	}
	return in, found, nil
}

func parse(file string) (*source, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, text: text, fset: token.NewFileSet()}
	s.tree, err = parser.ParseFile(s.fset, file, text, parser.SkipObjectResolution)
	return s, err
}

func (s *source) named(name string) (found []ast.Node) {
	for _, d := range s.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if nameOf(d) == name {
				found = append(found, d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, id := range v.Names {
					if id.Name == name {
						found = append(found, v)
					}
				}
			}
		}
	}
	return found
}

// nameOf returns the name of a function, with its receiver and without type parameters.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of, star := f.Recv.List[0].Type, false
	if p, ok := of.(*ast.StarExpr); ok {
		of, star = p.X, true
	}
	switch g := of.(type) {
	case *ast.IndexExpr:
		of = g.X
	case *ast.IndexListExpr:
		of = g.X
	}
	if star {
		return "(*" + of.(*ast.Ident).Name + ")." + f.Name.Name
	}
	return of.(*ast.Ident).Name + "." + f.Name.Name
}

// print returns the whole file. What comes before the package clause stays, since that can say for which systems the file is.
func (s *source) print() ([]byte, error) {
	var out bytes.Buffer
	out.Write(s.text[:s.fset.Position(s.tree.Package).Offset])
	if err := format.Node(&out, s.fset, s.tree); err != nil {
		return nil, err
	}
	_, err := parser.ParseFile(token.NewFileSet(), s.file, out.Bytes(), parser.SkipObjectResolution)
	return out.Bytes(), err
}

// show returns a node on one line, with where it is.
func (s *source) show(n ast.Node) string {
	at := s.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d: %s", filepath.Base(at.Filename), at.Line, oneLine(n))
}

func oneLine(n ast.Node) string {
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	const most = 160
	text := strings.Join(strings.Fields(b.String()), " ")
	if len(text) > most {
		return text[:most] + " …"
	}
	return text
}

// words are what a part of the code mentions. "s.Err" and "Err" are mentioned by s.Err, and "s.Err()" and "Err()" also if
// that is called. Literals and operators are words too.
type words map[string]bool

func wordsOf(nodes ...ast.Node) words {
	w := make(words)
	for _, n := range nodes {
		if n == nil {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				w[n.Name] = true
			case *ast.BasicLit:
				w[n.Value] = true
			case *ast.SelectorExpr:
				w.add(n, "")
			case *ast.CallExpr:
				w.add(n.Fun, "()")
			case *ast.BinaryExpr:
				w[n.Op.String()] = true
			case *ast.UnaryExpr:
				w[n.Op.String()] = true
			}
			return true
		})
	}
	return w
}

// add adds a name such as a.b.c, and its ends.
func (w words) add(name ast.Expr, tail string) {
	for {
		switch n := name.(type) {
		case *ast.Ident:
			w[n.Name+tail] = true
			return
		case *ast.SelectorExpr:
			tail = n.Sel.Name + tail
			w[tail] = true
			tail = "." + tail
			name = n.X
		default:
			return
		}
	}
}

func (w words) all(of []string) bool {
	for _, word := range of {
		if !w[word] {
			return false
		}
	}
	return true
}

// lines returns a node as it is printed.
func lines(n ast.Node) []string {
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), n); err != nil {
		return []string{err.Error()}
	}
	return strings.Split(b.String(), "\n")
}
