package exportedapi

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// handle is the definition of a name by the same name of an internal package: a type without exported fields, or a
// value. That shows users nothing.
var handle = regexp.MustCompile(`^\s*(?:type |var )?(\w+)(?:\s+\w+)?\s*(?:=\s*(?:\w+\()?)?\w+\.(\w+)\)?\s*$`)

func isHandle(line string) bool {
	names := handle.FindStringSubmatch(line)
	return names != nil && names[1] == names[2]
}

// What go doc shows of a package has no name of an internal package, which users cannot import.
func TestDocHasNoInternalNames(t *testing.T) {
	longtest.Only(t)
	var internals []string
	for path := range compile(t) {
		if strings.HasPrefix(path, module) && strings.Contains(path, "/internal/") {
			internals = append(internals, regexp.QuoteMeta(path[strings.LastIndex(path, "/")+1:]))
		}
	}
	if !slices.Contains(internals, "wire") {
		t.Fatalf("internal packages %q, without wire", internals)
	}
	name := regexp.MustCompile(`\b(` + strings.Join(internals, "|") + `)\.[A-Z]`)
	for _, pkg := range packages {
		out, err := exec.CommandContext(t.Context(), "go", "doc", "-all", module+pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go doc %s: %v\n%s", pkg, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if name.MatchString(line) && !isHandle(line) {
				t.Errorf("%s: %s", pkg, line)
			}
		}
	}
}
