package exportedapi

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// list returns the exported API of a package: a line for each constant, variable, function,
// type, field and method, sorted.
func list(pkg *types.Package) []string {
	l := lister{of: pkg}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			l.object(obj)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines) // two unexported methods of an interface are one line
}

type lister struct {
	of    *types.Package
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// qualify names other packages as their callers do, and the package itself not at all.
func (l *lister) qualify(pkg *types.Package) string {
	if pkg == l.of {
		return ""
	}
	return pkg.Name()
}

func (l *lister) typeString(t types.Type) string { return types.TypeString(t, l.qualify) }

func (l *lister) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		l.add("const %s %s = %s", obj.Name(), l.typeString(obj.Type()), obj.Val())
	case *types.Var:
		l.add("var %s %s", obj.Name(), l.typeString(obj.Type()))
	case *types.Func:
		l.add("func %s%s", obj.Name(), l.signature(obj))
	case *types.TypeName:
		l.typeName(obj)
	}
}

// signature is all of a function's type but the word func.
func (l *lister) signature(f *types.Func) string {
	return strings.TrimPrefix(l.typeString(f.Type()), "func")
}

func (l *lister) typeName(obj *types.TypeName) {
	if obj.IsAlias() {
		l.add("type %s = %s", obj.Name(), l.typeString(types.Unalias(obj.Type())))
		return
	}
	params := ""
	if named, ok := obj.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
		params = strings.TrimPrefix(l.typeString(named), obj.Name())
	}
	switch under := obj.Type().Underlying().(type) {
	case *types.Struct:
		l.add("type %s%s struct", obj.Name(), params)
		l.fields(obj.Name(), under)
	case *types.Interface:
		l.add("type %s%s interface", obj.Name(), params)
		l.interfaceMethods(obj.Name(), under)
		return
	default:
		l.add("type %s%s %s", obj.Name(), params, l.typeString(under))
	}
	l.methods(obj)
}

func (l *lister) fields(of string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case !f.Exported():
		case f.Embedded():
			l.add("field %s embeds %s", of, l.typeString(f.Type()))
		default:
			l.add("field %s.%s %s", of, f.Name(), l.typeString(f.Type()))
		}
	}
}

// interfaceMethods says of an interface with unexported methods that it has some: no other
// package can implement it.
func (l *lister) interfaceMethods(of string, t *types.Interface) {
	for m := range t.Methods() {
		if m.Exported() {
			l.add("method %s.%s%s", of, m.Name(), l.signature(m))
		} else {
			l.add("method %s.… is unexported", of)
		}
	}
}

// methods lists those of the pointer too, and those of embedded fields.
func (l *lister) methods(obj *types.TypeName) {
	values := types.NewMethodSet(obj.Type())
	for sel := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
		m := sel.Obj().(*types.Func)
		if !token.IsExported(m.Name()) {
			continue
		}
		receiver := obj.Name()
		if values.Lookup(m.Pkg(), m.Name()) == nil {
			receiver = "*" + receiver
		}
		l.add("method (%s) %s%s", receiver, m.Name(), l.signature(m))
	}
}
