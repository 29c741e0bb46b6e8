package placemodel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The functions exist that the package documentation names, in the model and in the code.
func TestNames(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^//\t(\w+\.go): (\w+) +(internal/\S+\.go): (.+)$`)
	rows := row.FindAllStringSubmatch(string(doc), -1)
	for _, r := range rows {
		expectFunc(t, r[1], r[2])
		for name := range strings.SplitSeq(r[4], ", ") {
			expectFunc(t, filepath.Join("../../../..", r[3]), name)
		}
	}
	if len(rows) < 50 {
		t.Errorf("the package documentation names %d functions of the model", len(rows))
	}
}

// expectFunc fails the test unless a file has a function or a method of a name.
func expectFunc(t *testing.T, file, name string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `[\[(]`).Match(text) {
		t.Errorf("%s has no function %s", file, name)
	}
}
