package prose

import (
	"fmt"
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

const recipes = "docs/recipes.md"

// The code of each recipe is in a Go file to which the recipe links, and which the tests of its package run.
func TestRecipes(t *testing.T) {
	code := regexp.MustCompile("(?s)```go\n(.*?)```")
	for section := range strings.SplitSeq(read(t, recipes), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		var sources []string
		for _, m := range links.FindAllStringSubmatch(section, -1) {
			if strings.HasPrefix(m[1], "../") {
				sources = append(sources, sourcesAt(t, filepath.Join("docs", m[1]))...)
			}
		}
		if len(sources) == 0 && !strings.HasPrefix(section, "# ") {
			t.Errorf("%s: no link to code", title)
		}
		for _, m := range code.FindAllStringSubmatch(section, -1) {
			block := flat(m[1])
			if !slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, block) }) {
				t.Errorf("%s: no file to which the recipe links has this:\n%s", title, m[1])
			}
		}
	}
}

// sourcesAt returns the Go files at a path, which is one or a directory.
func sourcesAt(t *testing.T, name string) []string {
	files := []string{filepath.Join(root, name)}
	if info, err := os.Stat(files[0]); err == nil && info.IsDir() {
		files = goFiles(t, files[0])
	}
	var all []string
	for _, file := range files {
		if filepath.Ext(file) != ".go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, flat(string(text)))
	}
	return all
}

// flat returns a text without indentation.
func flat(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// The table of lines by hand and with this module says what there is.
func TestRecipesLines(t *testing.T) {
	page := read(t, recipes)
	for _, row := range []struct {
		job, byHand, here string // files
		byHandNames       []string
		name              string
	}{
		{"a cron job that skips its turn when it is busy", "examples/schedule/byhand_test.go", "examples/schedule/main.go", []string{"fireByHand"}, "fire"},
		{"a handler that waits for two seconds and works for ten", "examples/httpserver/byhand_test.go", "examples/httpserver/shop.go", []string{"deductByHand"}, "deduct"},
		{"a lock for each key", "examples/keys/byhand_test.go", "examples/keys/main.go", []string{"byHand", "shared", "Do", "enter", "leave"}, "newLocks"},
	} {
		want := fmt.Sprintf("| %s | [%d](../%s) | [%d](../%s) |\n", row.job,
			lines(t, row.byHand, row.byHandNames...), row.byHand, lines(t, row.here, row.name), row.here)
		if !strings.Contains(page, want) {
			t.Errorf("%s lacks this:\n%s", recipes, want)
		}
	}
}

// lines counts the lines of functions and types, without comments and empty lines.
func lines(t *testing.T, file string, names ...string) int {
	t.Helper()
	text := read(t, file)
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	n, found := 0, 0
	for _, d := range f.Decls {
		name := ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			name = d.Name.Name
		case *ast.GenDecl:
			if spec, ok := d.Specs[0].(*ast.TypeSpec); ok {
				name = spec.Name.Name
			}
		}
		if !slices.Contains(names, name) {
			continue
		}
		found++
		for line := range strings.Lines(text[fset.Position(d.Pos()).Offset:fset.Position(d.End()).Offset]) {
			if line := strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	if found != len(names) {
		t.Errorf("%s has %d of %q", file, found, names)
	}
	return n
}
