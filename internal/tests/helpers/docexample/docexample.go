// Package docexample compares the example in a package's documentation, which no compiler sees, with the
// runnable one.
package docexample

import (
	"os"
	"strings"
	"testing"
)

// Check fails unless the first code block of doc.go is in example_package_test.go, line by line. It reads
// both files in the working directory, which is that of the package under test.
func Check(t *testing.T) {
	t.Helper()
	example := lines(firstBlock(read(t, "doc.go")))
	if example == "" {
		t.Fatal("doc.go has no example")
	}
	if !strings.Contains(lines(read(t, "example_package_test.go")), example) {
		t.Errorf("example_package_test.go does not have the example of doc.go:\n%s", example)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// firstBlock returns the first code block of a doc comment.
func firstBlock(doc string) string {
	var block strings.Builder
	for line := range strings.Lines(doc) {
		code, ok := strings.CutPrefix(line, "//\t")
		if ok {
			block.WriteString(code)
		} else if block.Len() > 0 {
			break
		}
	}
	return block.String()
}

// lines returns a text without indentation.
func lines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}
