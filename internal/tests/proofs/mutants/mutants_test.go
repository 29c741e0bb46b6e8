package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// mutant is a deliberate break of a promise.
type mutant struct {
	name    string // what is broken
	why     string // what comes of it
	changes []change
	by      witness
}

// change is an operation on a declaration of a package, which has a name in directories.
type change struct {
	pkg, name string
	do        operation
}

// witness is the test that notices, of a package that has a name in directories.
type witness struct {
	pkg, test string
	env       string
	args      []string
	also      *witness // notices too; nil for none
}

func by(pkg, test string) witness { return witness{pkg: pkg, test: test} }

// seeds is how many seeds a mutant may survive.
const seeds = "2000"

// andSeeds says that the simulation notices too: so its seeds are worth something. The kind is that of a lock, or "lease".
func (w witness) andSeeds(kind string) witness {
	w.also = &witness{pkg: "simulation", test: "TestSeeds", args: []string{"-seeds", seeds, "-kind", kind}}
	if kind == "lease" {
		w.also.test, w.also.args = "TestLeaseSeeds", []string{"-seeds", seeds}
	}
	w.also.env = "TURNSTILE_SIM_SHARD=0/1" // in one process, so that there is one count of seeds
	return w
}

// one returns the changes of a mutant that has one.
func one(pkg, name string, do operation) []change { return []change{{pkg, name, do}} }

func all() []mutant { return slices.Concat(sessions, locks) }

// Each mutant is noticed. They run one after another: a test that fails because the machine is busy has noticed nothing.
func TestMutants(t *testing.T) {
	longtest.Only(t)
	var names []string
	for _, m := range all() {
		if !strings.Contains(m.name, *mutantFlag) || !longtest.Chosen(*saltFlag, m.name, *everyFlag) {
			continue
		}
		names = append(names, m.name)
		t.Run(m.name, m.run)
	}
	if *everyFlag > 1 {
		longtest.Covered(t, "%d of %d mutants: %s", len(names), len(all()), strings.Join(names, ", "))
	} else {
		longtest.Covered(t, "%d mutants", len(names))
	}
}

// Each mutant fits the code: its place is there once, and the test that is to notice it exists.
func TestMutantsFit(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range all() {
		t.Run(m.name, func(t *testing.T) {
			if known[m.name] {
				t.Error("there are two of this name")
			}
			known[m.name] = true
			m.overlay(t)
			for w := &m.by; w != nil; w = w.also {
				w.find(t)
			}
		})
	}
}

// root is the directory of the module.
const root = "../../../.."

// directory returns the directory of a package.
func directory(t *testing.T, pkg string) string {
	t.Helper()
	dir, ok := directories[pkg]
	if !ok {
		t.Fatalf("directories has no %q", pkg)
	}
	abs, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// overlay writes the changed files, and returns the file that says what they replace.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	known, replace, dir := make(sources), make(map[string]string), t.TempDir()
	for _, c := range m.changes {
		s, err := known.declares(directory(t, c.pkg), c.name)
		if err != nil {
			t.Fatal(err)
		}
		before := s.text
		if err := c.do(s, c.name); err != nil {
			t.Fatalf("%s, in %s: %v", c.name, s.file, err)
		}
		was, is := difference(before, s.text)
		t.Logf("%s, in %s, was\n%s\nand is\n%s", c.name, s.file, was, is)
		if replace[s.file] == "" {
			replace[s.file] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		}
		if err := os.WriteFile(replace[s.file], []byte(s.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// find fails if there is no such test.
func (w *witness) find(t *testing.T) {
	t.Helper()
	name, _, _ := strings.Cut(w.test, "/")
	files, err := filepath.Glob(filepath.Join(directory(t, w.pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		s, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.named(name)) > 0 {
			return
		}
	}
	t.Errorf("%s has no %s", w.pkg, name)
}

// patience is how long a test may take to notice, with the build.
const patience = 10 * time.Minute

func (m mutant) run(t *testing.T) {
	overlay := m.overlay(t)
	for w := &m.by; w != nil; w = w.also {
		w.notice(t, overlay, m.why)
	}
}

// notice runs the test with the changed files, and fails if it passes.
func (w *witness) notice(t *testing.T, overlay, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	limit := "2m"
	if len(w.args) > 0 {
		limit = patience.String()
	}
	args := []string{"test", "-vet=off", "-count=1", "-timeout", limit, "-overlay", overlay, ".", "-run", pattern(w.test)}
	cmd := exec.CommandContext(ctx, "go", append(args, w.args...)...)
	cmd.Dir, cmd.WaitDelay = directory(t, w.pkg), 20*time.Second
	if w.env != "" {
		cmd.Env = append(os.Environ(), w.env)
	}
	began := time.Now()
	b, err := cmd.CombinedOutput()
	took, out := time.Since(began).Round(100*time.Millisecond), string(b)
	said, failed := complaint(out, w.test)
	switch {
	case err == nil:
		t.Errorf("%s of %s passes, in %v: %s", w.test, w.pkg, took, why)
	case !failed:
		t.Fatalf("%s of %s does not fail, but: %v\n%s", w.test, w.pkg, err, out[max(0, len(out)-2000):])
	default:
		t.Logf("%s of %s notices, in %v: %s", w.test, w.pkg, took, said)
	}
}

// pattern returns the value of -run for a test or a subtest.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_")) + "$"
	}
	return strings.Join(parts, "/")
}

var (
	failure = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: .*$`)
	panics  = regexp.MustCompile(`(?m)^(?:panic|fatal error): (.*)$`)
)

// complaint returns what a test says that has failed, or that has panicked. One that has taken too long has said nothing.
func complaint(out, test string) (said string, failed bool) {
	name, _, _ := strings.Cut(test, "/")
	if p := panics.FindStringSubmatch(out); p != nil {
		return p[0], !strings.Contains(p[0], "test timed out")
	}
	if !strings.Contains(out, "--- FAIL: "+name) {
		return "", false
	}
	for _, line := range failure.FindAllString(out, -1) {
		if said = strings.TrimSpace(line); !strings.Contains(said, ": covered: ") {
			break
		}
	}
	return said, true
}
