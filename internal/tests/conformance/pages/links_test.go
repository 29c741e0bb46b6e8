package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the module's directory.
var root = filepath.Join("..", "..", "..", "..")

var (
	blocks  = regexp.MustCompile("(?s)```.*?```")
	links   = regexp.MustCompile(`([^\[\]]*)\]\(([^)\s]+)\)`)
	test    = regexp.MustCompile(`^(Test|Fuzz|Example)\w+$`)
	heading = regexp.MustCompile(`(?m)^#+ (.+?) *$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	unlike  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Each link in a page leads to a file or a directory of the repository, or to a heading. The text of a link to a test
// is the name of a function in that file.
func TestLinks(t *testing.T) {
	n := 0
	for _, page := range match(t, "*.md", "docs/*.md", "docs/*/*.md", "otelzk/README.md", ".github/*.md") {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range links.FindAllStringSubmatch(blocks.ReplaceAllString(read(t, name), ""), -1) {
			file, anchor, anchored := strings.Cut(m[2], "#")
			if strings.Contains(file, "://") {
				continue
			}
			n++
			target := name
			if file != "" {
				target = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if anchored && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: %s has no heading #%s", name, target, anchor)
			} else if test.MatchString(m[1]) && !strings.Contains(read(t, target), "func "+m[1]+"(") {
				t.Errorf("%s: %s has no %s", name, target, m[1])
			}
		}
	}
	if n == 0 {
		t.Error("no page has a link")
	}
}

// anchors returns the names that GitHub gives to the headings of a page.
func anchors(page string) []string {
	var all []string
	seen := make(map[string]int)
	for _, m := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(page, ""), -1) {
		text := unlike.ReplaceAllString(linked.ReplaceAllString(m[1], "$1"), "")
		name := strings.ReplaceAll(strings.ToLower(text), " ", "-")
		if n := seen[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", name, n))
		} else {
			all = append(all, name)
		}
		seen[name]++
	}
	return all
}

// The code of each recipe is in a Go file to which the recipe links, and which the tests of its package run.
func TestRecipes(t *testing.T) {
	const page = "docs/recipes.md"
	code := regexp.MustCompile("(?s)```go\n(.*?)```")
	for section := range strings.SplitSeq(read(t, page), "\n## ") {
		title, _, _ := strings.Cut(section, "\n")
		var sources strings.Builder
		for _, m := range links.FindAllStringSubmatch(section, -1) {
			if target, ok := strings.CutPrefix(m[2], "../"); ok {
				files, _ := filepath.Glob(filepath.Join(root, target, "*.go"))
				for _, file := range append(files, filepath.Join(root, target)) {
					if filepath.Ext(file) == ".go" {
						sources.WriteString(flat(readFile(t, file)))
					}
				}
			}
		}
		if sources.Len() == 0 && !strings.HasPrefix(section, "# ") {
			t.Errorf("%s: no link to code", title)
		}
		for _, m := range code.FindAllStringSubmatch(section, -1) {
			if !strings.Contains(sources.String(), flat(m[1])) {
				t.Errorf("%s: no file to which the recipe links has this:\n%s", title, m[1])
			}
		}
	}
}

// The first example in the documentation of a package, which no compiler sees, is a part of one of its tests.
func TestDocExamples(t *testing.T) {
	block := regexp.MustCompile(`(?m)^//\t.*\n(//\t.*\n|//\n//\t.*\n)*`)
	for _, doc := range match(t, "*/doc.go") {
		code := regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(block.FindString(readFile(t, doc)), "")
		found := false
		for _, file := range match(t, filepath.Base(filepath.Dir(doc))+"/*_test.go") {
			found = found || strings.Contains(flat(readFile(t, file)), flat(code))
		}
		if code == "" || !found {
			t.Errorf("no test has the example of %s:\n%s", doc, code)
		}
	}
}

// flat returns a text without indentation.
func flat(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// match returns the files and directories that the patterns name, below the module's directory.
func match(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no %s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// read returns the text of a file below the module's directory.
func read(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, filepath.Join(root, name))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
