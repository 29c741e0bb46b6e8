package sim

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/longtest"
)

// mutantEnv is set in the processes that test a mutant.
const mutantEnv = "TURNSTILE_SIM_MUTANT"

// mutantSeeds is how many seeds a mutant may survive.
const mutantSeeds = 400

// Each mutant of the table is caught. The production code has no hook for that: a mutant
// is a build with other text in the place of a file.
func TestMutants(t *testing.T) {
	longtest.Only(t)
	if raceEnabled || os.Getenv(mutantEnv) != "" || os.Getenv(shardEnv) != "" || *seedFlag >= 0 {
		t.Skip("each mutant is a build and hundreds of seeds: CI runs them without -race, in a step of its own")
	}
	for _, m := range mutants {
		if *mutantFlag != "" && *mutantFlag != m.name {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each is a build and a process of its own
			m.test(t)
		})
	}
}

// The table fits the code: each text to change occurs exactly once.
func TestMutantTexts(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) { m.overlay(t) })
	}
}

var (
	afterSeeds = regexp.MustCompile(`after (\d+) seeds of this process: seed (\d+) fails`)
	firstWords = regexp.MustCompile(`(?m)^ *(at [0-9.ms]+: .*|the bubble: .*)$`)
)

func (m mutant) test(t *testing.T) {
	overlay := m.overlay(t)
	if by := noticedBy[m.name]; by != "" {
		m.testBy(t, overlay, by)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // most of it for the build
	defer cancel()
	began := time.Now()
	run, kind := "^TestSeeds$", m.kind
	if m.kind == leaseKind {
		run, kind = "^TestLeaseSeeds$", ""
	}
	// It runs in a process of its own without shards, so that there is one count of seeds.
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-overlay", overlay, ".",
		"-run", run, "-seeds", strconv.Itoa(mutantSeeds), "-kind", kind)
	cmd.Env = append(os.Environ(), mutantEnv+"="+m.name, shardEnv+"=0/1")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	took := time.Since(began).Round(100 * time.Millisecond)
	if err == nil {
		t.Errorf("survives %d seeds, in %v: %s", mutantSeeds, took, m.why)
		return
	}
	found := afterSeeds.FindSubmatch(out)
	if found == nil {
		t.Fatalf("no seed has failed, but in %v: %v\n%s", took, err, tail(string(out)))
	}
	said := strings.TrimSpace(string(firstWords.Find(out)))
	t.Logf("caught by seed %s, after %s, in %v: %s", found[2], found[1], took, said)
}

// testBy runs the test that must notice, which is in another package.
func (m mutant) testBy(t *testing.T, overlay, by string) {
	pkg, run, _ := strings.Cut(by, " ")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-overlay", overlay, "../../"+pkg, "-run", "^"+run+"$").CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("%s passes: %s", by, m.why)
	case !strings.Contains(string(out), "--- FAIL: "+run) && !strings.Contains(string(out), "panic: "):
		t.Fatalf("%s does not fail, but: %v\n%s", by, err, tail(string(out)))
	default:
		t.Logf("caught by %s", by)
	}
}

// overlay writes the patched files and returns the file that says what they replace.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	patched := make(map[string]string)
	for _, e := range m.edits {
		name := filepath.Join(root, filepath.FromSlash(e.file))
		text, ok := patched[name]
		if !ok {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has the text to change %d times, not once; mend the table:\n%s", e.file, n, e.old)
		}
		patched[name] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := make(map[string]string)
	for name, text := range patched {
		out := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[name] = out
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
