package misusetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// exported returns the names of a package's exported types that have exported methods, and of
// its exported functions that take a context.
func exported(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || !fn.Name.IsExported():
			case fn.Recv != nil:
				names = append(names, receiver(fn.Recv.List[0].Type))
			case hasContext(fn.Type):
				names = append(names, fn.Name.Name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
	slices.Sort(names)
	return slices.Compact(names), nil
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// hasContext reports whether a function takes a context.Context.
func hasContext(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(field *ast.Field) bool {
		s, ok := field.Type.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Context"
	})
}
