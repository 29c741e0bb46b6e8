package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md names what there is: files and directories, names in files, and targets of make. It has
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
			source := read(t, in[1])
			for name := range strings.FieldsFuncSeq(in[2], func(r rune) bool { return strings.ContainsRune(", .", r) }) {
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(source) {
					t.Errorf("%s has no %s", in[1], name)
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
