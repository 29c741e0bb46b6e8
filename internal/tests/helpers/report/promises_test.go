package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesAreTested checks that each test that the pages name, as [TestName](file), is in that
// file.
func TestPromisesAreTested(t *testing.T) {
	link := regexp.MustCompile(`\[((?:Test|Fuzz|Example)\w+)\]\(([^)]+)\)`)
	var pages []string
	for _, pattern := range []string{"*.md", "measured/*.md"} {
		found, err := filepath.Glob("../../../../docs/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			source, err := os.ReadFile(filepath.Join(filepath.Dir(page), m[2]))
			if err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			} else if !strings.Contains(string(source), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which is not in %s", page, m[1], m[2])
			}
		}
	}
	if links == 0 {
		t.Error("no page names a test")
	}
}
