// Package filelist compares the list of files in a package's documentation with the files that there are.
package filelist

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var line = regexp.MustCompile(`(?m)^//\t([a-z]+(?:, [a-z]+)*) +`)

// Check fails unless the list in doc.go of the package under test has each of its files once, and no others.
func Check(tb testing.TB) {
	tb.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		tb.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "# Files\n")
	listed := make(map[string]int)
	for _, names := range line.FindAllStringSubmatch(list, -1) {
		for _, name := range strings.Split(names[1], ", ") {
			listed[name+".go"]++
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		if f != "doc.go" && !strings.HasSuffix(f, "_test.go") && listed[f] != 1 {
			tb.Errorf("%s is listed %d times", f, listed[f])
		}
		delete(listed, f)
	}
	if len(listed) > 0 {
		tb.Errorf("there are no files %v", listed)
	}
}
