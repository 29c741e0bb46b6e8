package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md names what there is: files and directories, names that files declare, and targets of make. It has
// each package below internal.
func TestArchitecture(t *testing.T) {
	page, makefile := read(t, "ARCHITECTURE.md"), read(t, "Makefile")
	inFile := regexp.MustCompile(`^(\S+\.go): (.+)$`)
	var named []string
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(page, -1) {
		span := m[1]
		in := inFile.FindStringSubmatch(span)
		target, isTarget := strings.CutPrefix(span, "make ")
		switch {
		case in != nil:
			declared := declarations(t, in[1])
			for name := range strings.FieldsFuncSeq(in[2], func(r rune) bool { return strings.ContainsRune(", .", r) }) {
				if !declared[name] {
					t.Errorf("%s does not declare %s", in[1], name)
				}
			}
		case isTarget:
			target, _, _ = strings.Cut(target, " ") // before its variables
			if !strings.Contains(makefile, "\n"+target+":") {
				t.Errorf("the Makefile has no target %s", target)
			}
		case !strings.Contains(span, " ") && strings.Contains(span, "/"):
			named = append(named, strings.TrimSuffix(span, "/"))
			if _, err := os.Stat(filepath.Join(root, span)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, dir := range match(t, "internal/*", "internal/tests/*/*") {
		name, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		sources, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		if name = filepath.ToSlash(name); len(sources) > 0 && !slices.Contains(named, name) {
			t.Errorf("ARCHITECTURE.md lacks package %s", name)
		}
	}
}

// declarations returns the functions, methods, types, fields, variables and constants that a file declares outside of
// function bodies.
func declarations(t *testing.T, name string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]bool)
	add := func(names ...*ast.Ident) {
		for _, n := range names {
			declared[n.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
			return false // its parameters and variables do not count
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		}
		return true
	})
	return declared
}
