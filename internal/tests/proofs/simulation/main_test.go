package simulation

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/google/uuid"
)

var (
	seedFlag   = flag.Int64("seed", -1, "run this seed alone, with its trace")
	seedsFlag  = flag.Int("seeds", 0, "how many seeds to run (default 450, or 90 with -race; fewer without TURNSTILE_LONG)")
	firstFlag  = flag.Int64("first", 1, "the first seed to run")
	kindFlag   = flag.String("kind", "", "the lock type to run; default: each seed draws one")
	keepFlag   = flag.Bool("keep", false, "go on after a seed that fails")
	mutantFlag = flag.String("mutant", "", "run this mutant alone")
	everyFlag  = flag.Int("every", 1, "try one in so many mutants")
	saltFlag   = flag.String("salt", "", "decides which mutants -every tries")
)

func TestMain(m *testing.M) {
	flag.Parse()
	uuid.SetRand(idSource{})
	// One processor: goroutines of a bubble seldom run at the same time, and so the run depends
	// less on the scheduler.
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
