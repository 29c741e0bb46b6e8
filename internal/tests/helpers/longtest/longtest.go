// Package longtest keeps a plain "go test ./..." short. A test that takes long calls [Only], and
// a test that can do more or less of the same calls [Pick]. Both go by the environment
// variable TURNSTILE_LONG. Continuous integration sets it to 1, so that nothing is left out
// there. A test that -run asks for runs in full, too.
package longtest

import (
	"flag"
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

// Pick returns full if the long tests run, and otherwise short: how many seeds to try, for
// example.
func Pick[T any](short, full T) T {
	if On() {
		return full
	}
	return short
}
