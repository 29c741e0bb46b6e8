// Package longtest keeps a plain "go test ./..." short. A test that takes long calls [Only], and a test that can do more or
// less of the same calls [Pick]. Both go by the environment variable TURNSTILE_LONG, which "make proof" sets. A test that
// continuous integration runs for each change, and a plain "go test ./..." does not, calls [InCI]. A test that -run asks
// for runs in full, too.
package longtest

import (
	"flag"
	"hash/fnv"
	"os"
	"testing"
)

// Env is the environment variable that turns the long tests on. Unset, "" and "0" mean off.
const Env = "TURNSTILE_LONG"

// On reports whether the long tests run. It must not be called before the flags are parsed.
func On() bool {
	run := flag.Lookup("test.run")
	return on(os.Getenv(Env), run != nil && run.Value.String() != "")
}

func on(env string, asked bool) bool { return env != "" && env != "0" || asked }

// Only skips the test unless the long tests run.
func Only(tb testing.TB) {
	tb.Helper()
	if !On() {
		tb.Skip("a long test: " + Env + "=1 runs it")
	}
}

// requireEnv is zktest's. The tests of that package use this one, which cannot import it.
const requireEnv = "ZKTEST_REQUIRE_REAL"

// InCI skips the test unless the long tests run, or this is continuous integration, where no server may be missing.
func InCI(tb testing.TB) {
	tb.Helper()
	if !On() && !on(os.Getenv(requireEnv), false) {
		tb.Skip("a test that CI runs: " + requireEnv + "=1 or " + Env + "=1 runs it")
	}
}

// Covered logs what a proof covered. "make proof" shows it in its table.
func Covered(tb testing.TB, format string, args ...any) {
	tb.Helper()
	tb.Logf("covered: "+format, args...)
}

// Chosen reports whether name is in a sample of one in n names. The salt, such as the hash of a commit, decides which:
// with another salt it is another sample, so that in time each name is in one.
func Chosen(salt, name string, n int) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(salt + "/" + name))
	return h.Sum32()%uint32(max(n, 1)) == 0
}

// Pick returns full if the long tests run, and otherwise short: how many seeds to try, for
// example.
func Pick[T any](short, full T) T {
	if On() {
		return full
	}
	return short
}
