package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the module's directory.
var root = filepath.Join("..", "..", "..")

var opening = regexp.MustCompile(`(?m)^<!-- (\w+) -->$`)

// pages returns the names of all pages with text for users, below root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		name, err = filepath.Rel(root, name)
		all = append(all, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every section of a page says when it was made, and has its line in the table here.
func TestSectionsAreDated(t *testing.T) {
	known := make(map[string]bool) // by page and name; false until it is found
	for _, s := range sections {
		known[s.page+" "+s.name] = false
	}
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		texts := report.Sections(string(text))
		for _, m := range opening.FindAllStringSubmatch(string(text), -1) {
			section := page + " " + m[1]
			if _, ok := known[section]; !ok {
				t.Errorf("%s is not in the table of sections", section)
			}
			known[section] = true
			if !report.Dated(texts[m[1]]) {
				t.Errorf("%s does not say when it was made, and from which commit", section)
			}
		}
	}
	for section, found := range known {
		if !found {
			t.Errorf("there is no section %s", section)
		}
	}
}

// The table names directories with code, and targets of the Makefile.
func TestTableIsRight(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		for _, dir := range s.code {
			if files, err := filepath.Glob(filepath.Join(root, dir, "*.go")); err != nil || len(files) == 0 {
				t.Errorf("%s: there is no code in %s", s.name, dir)
			}
		}
		words := strings.Fields(s.renew)
		if len(words) < 2 || words[0] != "make" || !strings.Contains(string(makefile), "\n"+words[1]+":") {
			t.Errorf("%s: %q is no target of the Makefile", s.name, s.renew)
		}
	}
}

func TestList(t *testing.T) {
	var out strings.Builder
	if err := list(&out, root); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+len(sections) {
		t.Fatalf("%d lines, want one more than there are sections:\n%s", len(lines), &out)
	}
	for i, s := range sections {
		if line := lines[1+i]; !strings.HasPrefix(line, s.name+" ") || !strings.Contains(line, s.page) || !strings.HasSuffix(line, s.renew) {
			t.Errorf("the line of %s is %q", s.name, line)
		}
	}
	lost := section{name: "lost", code: []string{"queue"}}
	if got := lost.changed(root, "0000000"); !strings.HasPrefix(got, "unknown") {
		t.Errorf("since a commit that does not exist: %q", got)
	}
}

func TestCount(t *testing.T) {
	if lines, files := count("3\t1\tqueue/a.go\n0\t2\tqueue/b.go\n-\t-\tc.png"); lines != 6 || files != 3 {
		t.Errorf("%d lines in %d files, want 6 in 3", lines, files)
	}
}
