package place

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The list of files in the package documentation has each file once.
func TestFilesAreListed(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "# Files\n")
	listed := make(map[string]int)
	for _, line := range regexp.MustCompile(`(?m)^//\t([a-z]+(?:, [a-z]+)*) +`).FindAllStringSubmatch(list, -1) {
		for _, name := range strings.Split(line[1], ", ") {
			listed[name+".go"]++
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f != "doc.go" && !strings.HasSuffix(f, "_test.go") && listed[f] != 1 {
			t.Errorf("%s is listed %d times", f, listed[f])
		}
		delete(listed, f)
	}
	if len(listed) > 0 {
		t.Errorf("there are no files %v", listed)
	}
}
