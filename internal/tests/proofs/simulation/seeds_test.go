package simulation

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// report describes a seed that failed, with the command that replays it.
func (o *outcome) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d fails; again: go test ./internal/tests/proofs/simulation -run 'TestSeed$' -seed %d -v\n", o.seed, o.seed)
	for _, f := range o.failures {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	const most = 60
	from := 0
	for i, l := range o.trace { // up to the first failure
		if strings.Contains(l, " FAIL ") {
			from = i + 1
			break
		}
	}
	if from == 0 {
		from = len(o.trace)
	}
	for _, l := range o.trace[max(0, from-most):from] {
		b.WriteString("  " + l + "\n")
	}
	return b.String()
}

// TestSeed runs one seed, and prints its trace.
func TestSeed(t *testing.T) {
	if *seedFlag < 0 {
		t.Log("nothing to do without -seed")
		return
	}
	began := time.Now()
	out := runSeed(t, uint64(*seedFlag))
	for _, l := range out.trace {
		fmt.Fprintln(os.Stdout, l)
	}
	t.Logf("%v virtual in %v, %d lines, %d grants, %d places kept and used again, %d requests sent with others, %v",
		out.virtual, time.Since(began), len(out.trace), out.grants, out.reused, out.joined, out.strikes)
	if len(out.failures) > 0 {
		t.Error(out.report())
	}
}

// shardEnv is set in the processes that run seeds: "0/2" is the first of two.
const shardEnv = "TURNSTILE_SIM_SHARD"

const shards = 2

// TestSeeds runs many seeds, in several processes. A process has only one source of uuids, and a
// bubble runs fastest on one thread.
func TestSeeds(t *testing.T) {
	if shard := os.Getenv(shardEnv); shard != "" {
		runShard(t, shard)
		return
	}
	began := time.Now()
	var all sync.WaitGroup
	for i := range shards {
		all.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestSeeds$", "-test.timeout=0",
				"-seeds", strconv.Itoa(seedCount()), "-first", strconv.FormatInt(*firstFlag, 10),
				"-kind", *kindFlag, "-keep="+strconv.FormatBool(*keepFlag))
			// One thread, and rare collections of garbage: a seed then takes nine tenths of the time.
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d/%d", shardEnv, i, shards), "GOMAXPROCS=1", "GOGC=400")
			out, err := cmd.CombinedOutput()
			out = progress.ReplaceAll(out, nil)
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			} else {
				t.Logf("%s", out)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	longtest.Covered(t, "%d seeds from %d on, %.0f a second", seedCount(), *firstFlag, float64(seedCount())/took.Seconds())
}

// progress matches what a process prints before each seed, and erases when the seed has ended. So if
// a process dies, its last words name the seed.
var progress = regexp.MustCompile(`\rseed \d+\r`)

func seedCount() int {
	if *seedsFlag > 0 {
		return *seedsFlag
	}
	if raceEnabled {
		return longtest.Pick(10, 90)
	}
	return longtest.Pick(20, 450)
}

// runShard runs the seeds of one process, and ends at the first one that fails. It prints the report.
func runShard(t *testing.T, shard string) {
	var i, n int
	if _, err := fmt.Sscanf(shard, "%d/%d", &i, &n); err != nil {
		t.Fatal(err)
	}
	grants, failed, reused, batched, joined := 0, 0, 0, 0, 0
	var virtual time.Duration
	for s := *firstFlag + int64(i); s < *firstFlag+int64(seedCount()); s += int64(n) {
		out := runGuarded(t, uint64(s))
		grants += out.grants
		reused += out.reused
		joined += out.joined
		if kindOf(uint64(s)).batched {
			batched++
		}
		virtual += out.virtual
		if len(out.failures) > 0 {
			failed++
			t.Errorf("after %d seeds of this process: %s", (s-*firstFlag)/int64(n)+1, out.report())
			if !*keepFlag {
				return
			}
		}
	}
	if batched > 0 && joined == 0 {
		t.Errorf("no request of %d seeds was sent with others", batched)
	}
	fmt.Printf("%s: %d grants, %d places kept and used again, %d requests sent with others, in %v of virtual time, %d seeds failed\n",
		shard, grants, reused, joined, virtual.Round(time.Second), failed)
}

// runGuarded runs a seed, and names it also when the run cannot report: when another goroutine
// panics, or when the run does not end.
func runGuarded(t *testing.T, seed uint64) *outcome {
	fmt.Fprintf(os.Stderr, "\rseed %d", seed)
	limit := time.AfterFunc(2*time.Minute, func() { // of a busy machine: seconds are no hang there
		panic(fmt.Sprintf("seed %d hangs; again: go test ./internal/tests/proofs/simulation -run 'TestSeed$' -seed %d -v", seed, seed))
	})
	defer limit.Stop()
	out := runSeed(t, seed)
	fmt.Fprint(os.Stderr, "\r")
	return out
}

// Two runs of a seed are the same to the last nanosecond, so that a seed that failed can be replayed.
// In one run of thousands the scheduler's choice between two goroutines of one connection at one
// instant still shows, so a seed must be the same nearly always. In a few seeds of a hundred it may
// differ more often: a manager closes a lost session, asks for the tick and dials for the next
// session at one instant. On a busy machine the runtime stops goroutines in the middle, and more seeds differ. Seeds
// with a bound on the calls in flight are left out: see windowOf.
func TestDeterminism(t *testing.T) {
	n, same, odd := longtest.Pick[int64](8, 100), int64(0), 0
	if raceEnabled {
		n = min(n, 20)
	}
	for s, tried := *firstFlag, int64(0); tried < n; s++ {
		if windowOf(uint64(s)) >= 0 {
			continue
		}
		tried++
		one, two := runSeed(t, uint64(s)).trace, runSeed(t, uint64(s)).trace
		if slices.Equal(one, two) {
			same++
			continue
		}
		i := 0
		for i < len(one) && i < len(two) && one[i] == two[i] {
			i++
		}
		from := max(0, i-12)
		t.Logf("seed %d differs at line %d of %d:\n%s\n--- or\n%s", s, i, len(one),
			strings.Join(one[from:min(len(one), i+6)], "\n"), strings.Join(two[from:min(len(two), i+6)], "\n"))
		if !replays(t, uint64(s), one, two) {
			odd++
		}
	}
	t.Logf("%d of %d seeds ran twice the same", same, n)
	if odd > max(2, int(n)/5) {
		t.Errorf("%d of %d seeds do not replay", odd, n)
	}
}

// replays reports whether most runs of a seed are the same as one of two that differ.
func replays(t *testing.T, seed uint64, one, two []string) bool {
	const more = 8
	ones, twos := 1, 1
	for range more {
		switch trace := runSeed(t, seed).trace; {
		case slices.Equal(trace, one):
			ones++
		case slices.Equal(trace, two):
			twos++
		}
	}
	t.Logf("seed %d: of %d more runs %d are as the first, %d as the second", seed, more, ones-1, twos-1)
	// With the race detector the scheduler's choices show more often, in about one seed of ten.
	return max(ones, twos) >= more || raceEnabled
}
