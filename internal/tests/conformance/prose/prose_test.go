package prose

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's directory.
var root = filepath.Join("..", "..", "..", "..")

// pages are the Markdown pages that are checked.
var pages = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "docs/*/*.md",
	"otelzk/README.md", ".github/*.md", ".github/*/*.yml",
}

// packages are the directories whose comments are checked.
var packages = []string{
	"bench/*", "bench/internal/*", "cmd/*", "cmd/turnstile/internal/*", "examples/*", "internal/*", "internal/tests/*", "internal/tests/*/*",
	"election", "fence", "lockz", "otelzk", "queue", "rwlock", "schedule", "semaphore", "session", "zklock", "zktest", "zktest/internal/*",
}

// Pages and comments have none of the phrases that the rules do not want.
func TestProse(t *testing.T) {
	for _, page := range match(t, pages) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		report(t, page, 1, string(text))
	}
	for _, dir := range match(t, packages) {
		for _, file := range goFiles(t, dir) {
			comments(t, file)
		}
	}
}

func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// match returns the files and directories that the patterns name. Each pattern must name some.
func match(t *testing.T, patterns []string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("there is no %s", pattern)
		}
		all = append(all, found...)
	}
	return all
}

// comments checks all comments of a Go file.
func comments(t *testing.T, file string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.Comments {
		// One text a group, with a line for each of its lines.
		report(t, file, fset.Position(group.Pos()).Line, plain(group))
	}
}

// plain returns the text of a comment without its slashes. An indented line, which is code,
// becomes an empty line.
func plain(group *ast.CommentGroup) string {
	var lines []string
	for _, c := range group.List {
		text, ok := strings.CutPrefix(c.Text, "//")
		if !ok {
			text = strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
		}
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") {
				line = ""
			}
			lines = append(lines, strings.TrimPrefix(line, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// report fails for each phrase in a text that begins at a line of a file.
func report(t *testing.T, file string, line int, text string) {
	t.Helper()
	name, err := filepath.Rel(root, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range check(text) {
		t.Errorf("%s:%d: %q: %s", filepath.ToSlash(name), line+strings.Count(text[:f.offset], "\n"), f.phrase, f.rule.instead)
	}
}

// The rules find what they are for, and no more.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // the line and the phrase
	}{
		{"Whoever may go goes.", []string{"1 Whoever"}},
		{"A lock is for one\nwho asks.", []string{"1 one who"}},
		{"It is free.\nWho waits leaves the queue.", []string{"2 Who waits", "2 Who"}},
		{"What is granted is a turn.", []string{"1 What is"}},
		{"It tells him that he holds his lock.", []string{"1 him", "1 he", "1 his"}},
		{"What is left goes.", []string{"1 What is left", "1 What is"}},
		{"| a | b |\n| Who leads | c |", []string{"2 Who"}},
		{"Who leads? What is a lease?", nil},
		{"A waiter watches its predecessor. See what it costs, and \"whoever\", `he` and [this](his).", nil},
		{"The client that holds it, and an operator who deletes it.", nil},
		{"```\nwhoever\n```\nother", nil},
	} {
		var got []string
		for _, f := range check(c.text) {
			got = append(got, fmt.Sprintf("%d %s", 1+strings.Count(c.text[:f.offset], "\n"), f.phrase))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: found %q, want %q", c.text, got, c.want)
		}
	}
}
