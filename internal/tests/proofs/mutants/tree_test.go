package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

// source is a file of a package.
type source struct {
	file string
	text string
	fset *token.FileSet
	tree *ast.File
}

// sources are files that were parsed, by their paths. Several changes of one file change one text.
type sources map[string]*source

// declares returns the file that declares a function or a package-level name. A method is named (*T).f or T.f, as in a
// stack trace.
func (all sources) declares(dir, name string) (in *source, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if all[file] == nil {
			if all[file], err = read(file); err != nil {
				return nil, err
			}
		}
		for range all[file].named(name) {
			if in != nil {
				return nil, fmt.Errorf("%s is declared in %s and in %s", name, in.file, file)
			}
			in = all[file]
		}
	}
	if in == nil {
		return nil, fmt.Errorf("%s has no %s", dir, name)
	}
	return in, nil
}

func read(file string) (*source, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, text: string(text)}
	return s, s.parse()
}

func (s *source) parse() (err error) {
	s.fset = token.NewFileSet()
	s.tree, err = parser.ParseFile(s.fset, s.file, s.text, parser.SkipObjectResolution)
	return err
}

// of returns the text of a node.
func (s *source) of(n ast.Node) string {
	return s.text[s.fset.Position(n.Pos()).Offset:s.fset.Position(n.End()).Offset]
}

// edit puts text in the place of a node.
func (s *source) edit(n ast.Node, text string) error {
	s.text = s.text[:s.fset.Position(n.Pos()).Offset] + text + s.text[s.fset.Position(n.End()).Offset:]
	return s.parse()
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
	of, _, _ := strings.Cut(types.ExprString(f.Recv.List[0].Type), "[")
	if strings.HasPrefix(of, "*") {
		of = "(" + of + ")"
	}
	return of + "." + f.Name.Name
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
				w.add(types.ExprString(n))
			case *ast.CallExpr:
				w.add(types.ExprString(n.Fun) + "()")
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
func (w words) add(name string) {
	for more := true; more; {
		w[name] = true
		_, name, more = strings.Cut(name, ".")
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
