//go:build !race

package simulation

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// mutantSeeds is how many seeds a mutant may survive.
const mutantSeeds = 2000 // no-sync shows in one seed of some hundred

// Each mutant of the table is caught. The production code has no hook for that: a mutant
// is a build with other text in the place of a file.
//
// The test is not part of a build with -race. Each mutant is a build and hundreds of seeds, which CI
// runs at full speed, in a step of its own.
func TestMutants(t *testing.T) {
	longtest.Only(t)
	var names []string
	for _, m := range mutants {
		if *mutantFlag != "" && *mutantFlag != m.name || !longtest.Chosen(*saltFlag, m.name, *everyFlag) {
			continue
		}
		names = append(names, m.name)
		t.Run(m.name, func(t *testing.T) {
			t.Parallel() // each is a build and a process of its own
			m.test(t)
		})
	}
	if *everyFlag > 1 {
		longtest.Covered(t, "%d of %d mutants: %s", len(names), len(mutants), strings.Join(names, ", "))
	} else {
		longtest.Covered(t, "%d mutants", len(names))
	}
}

var (
	afterSeeds = regexp.MustCompile(`after (\d+) seeds of this process: seed (\d+) fails`)
	lastWords  = regexp.MustCompile(`\rseed (\d+)panic: (runtime error: .*)`)
	firstWords = regexp.MustCompile(`(?m)^ *(at [0-9.ms]+: .*|the bubble: .*)$`)
)

func (m mutant) test(t *testing.T) {
	overlay := m.overlay(t)
	if by := noticedBy[m.name]; by != "" {
		m.testBy(t, overlay, by)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // most of it for the build, on a busy machine
	defer cancel()
	began := time.Now()
	run, kind := "^TestSeeds$", m.kind
	if m.kind == leaseKind {
		run, kind = "^TestLeaseSeeds$", ""
	}
	// It runs in a process of its own without shards, so that there is one count of seeds.
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-overlay", overlay, ".",
		"-run", run, "-seeds", strconv.Itoa(mutantSeeds), "-kind", kind)
	cmd.Env = append(os.Environ(), shardEnv+"=0/1")
	cmd.WaitDelay = 20 * time.Second // on a busy machine
	out, err := cmd.CombinedOutput()
	took := time.Since(began).Round(100 * time.Millisecond)
	if err == nil {
		t.Errorf("survives %d seeds, in %v: %s", mutantSeeds, took, m.why)
		return
	}
	if died := lastWords.FindSubmatch(out); died != nil { // the mutant is broken so far that it panics
		t.Logf("caught by seed %s, in %v: panic: %s", died[1], took, died[2])
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
	out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-overlay", overlay, "../../../../"+pkg, "-run", "^"+run+"$").CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("%s passes: %s", by, m.why)
	case !strings.Contains(string(out), "--- FAIL: "+run) && !strings.Contains(string(out), "panic: "):
		t.Fatalf("%s does not fail, but: %v\n%s", by, err, tail(string(out)))
	default:
		t.Logf("caught by %s", by)
	}
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
