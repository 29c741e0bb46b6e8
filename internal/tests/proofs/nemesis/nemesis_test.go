//go:build linux

package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/report"
)

const (
	lengthEnv = "NEMESIS"      // how long to attack each contestant
	seedEnv   = "NEMESIS_SEED" // of the schedule and of the workers
	rivalEnv  = "RIVAL"        // zk, curator, or all: ours and both
	lockEnv   = "LOCK"         // of ours, the names of those to attack, with commas between; default: all
	tickEnv   = "TICK"         // of the servers; default: shortTick

	// certainly bounds waits for what our locks must do, on any machine.
	certainly = time.Minute
	// perhaps bounds waits for what a rival may do or not.
	perhaps = 10 * time.Second
)

// contestant is a library whose locks are attacked, all of them at once.
type contestant struct {
	name     string
	command  func(*testing.T) command
	subjects []subject
	ours     bool // violations fail the test; those of rivals are counted
}

var (
	turnstile = contestant{"turnstile", func(*testing.T) command { return goCommand("turnstile") }, subjects, true}
	rivals    = map[string]contestant{
		"zk":      {"zk.Lock", func(*testing.T) command { return goCommand("zk") }, []subject{alone}, false},
		"curator": {"Curator", curatorCommand, []subject{alone}, false},
	}
)

// Three servers and five workers are attacked, and what they have written down is checked.
func TestNemesis(t *testing.T) {
	longtest.Only(t)
	length, seed, p, contestants := configured(t)
	var all []*outcome
	for _, c := range contestants {
		// Not in a subtest: it is the test that is skipped without a ZooKeeper.
		for _, o := range attack(t, c, seed, length, p) {
			o.log(t)
			all = append(all, o)
			if c.ours && (len(o.violations) > 0 || len(o.faults) > 0) {
				t.Errorf("%s, seed %d: %d violations, faults: %q; to attack so again: %s=%v %s=%v %s=%d go test -run TestNemesis ./internal/tests/proofs/nemesis",
					o.name, seed, len(o.violations), o.faults, tickEnv, p.tick, lengthEnv, length, seedEnv, seed)
			}
		}
	}
	t.Logf("\n%s", table(all, p))
	for _, o := range all {
		longtest.Covered(t, "%s: %d rounds, %d acquisitions", o.name, o.rounds, o.acquisitions)
	}
	if *writeFlag {
		if err := report.Section(filepath.Join("..", "..", "..", "..", "docs", "measured", "nemesis.md"), "nemesis", table(all, p)); err != nil {
			t.Error(err)
		}
	}
	if *addFlag {
		if err := addAttack(all, p); err != nil {
			t.Error(err)
		}
	}
}

func configured(t *testing.T) (length time.Duration, seed uint64, p pace, contestants []contestant) {
	t.Helper()
	length, seed, p = time.Minute, uint64(time.Now().UnixNano())%1_000_000, paceOf(shortTick)
	var err error
	if v := os.Getenv(lengthEnv); v != "" {
		if length, err = time.ParseDuration(v); err != nil || length <= 0 {
			t.Fatalf("%s=%q: want a duration, such as 15m", lengthEnv, v)
		}
	}
	if v := os.Getenv(tickEnv); v != "" {
		tick, err := time.ParseDuration(v)
		if err != nil || tick < 100*time.Millisecond || tick > 10*time.Second {
			t.Fatalf("%s=%q: want a duration between 100ms and 10s, such as 2s", tickEnv, v)
		}
		p = paceOf(tick)
	}
	if v := os.Getenv(seedEnv); v != "" {
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("%s=%q: want a number", seedEnv, v)
		}
	}
	if v := os.Getenv(lockEnv); v != "" {
		if turnstile.subjects, err = chosen(strings.Split(v, ",")); err != nil {
			t.Fatalf("%s=%q: %v", lockEnv, v, err)
		}
	}
	switch v := os.Getenv(rivalEnv); v {
	case "":
		contestants = []contestant{turnstile}
	case "all":
		contestants = []contestant{turnstile, rivals["zk"], rivals["curator"]}
	default:
		c, ok := rivals[v]
		if !ok {
			t.Fatalf("%s=%q: want zk, curator or all", rivalEnv, v)
		}
		contestants = []contestant{c}
	}
	t.Logf("%s=%d", seedEnv, seed)
	return length, seed, p, contestants
}

// attack attacks one contestant by the seed's schedule, heals all, and judges the histories.
func attack(t *testing.T, c contestant, seed uint64, length time.Duration, p pace) []*outcome {
	t.Helper()
	s := newSite(t, c, seed, p)
	all := make([]*outcome, len(s.targets))
	for i, g := range s.targets {
		all[i] = &outcome{name: c.name, seed: seed, target: g, timeout: p.timeout}
		if c.ours {
			all[i].name += ", " + g.name
		}
	}
	s.heal()
	if took := s.served(0, certainly); slices.Contains(took, -1) {
		t.Fatalf("%s: not everybody is served before anything has gone wrong: %v", c.name, took)
	}
	began := now()
	for plan, rounds := newSchedule(seed, s.timeout), 1; since(began) < length; rounds++ {
		t.Logf("%s, round %d: %s", c.name, rounds, s.round(plan.next(), all))
	}
	for _, o := range all {
		o.length = since(began)
	}
	s.finish(c, all)
	deaths, kills := s.crew.deaths()
	for _, o := range all {
		o.judge(t, deaths, kills)
	}
	return all
}

// round attacks, heals, and checks that every worker is served. It returns a line about that.
func (s *site) round(r round, all []*outcome) string {
	s.t.Helper()
	s.attack(r)
	s.heal()
	healed := now()
	var slowest time.Duration
	var stalled []string
	for i, took := range s.served(healed, s.stall()) {
		o := all[i]
		o.rounds++
		if took < 0 {
			o.stalls++
			stalled = append(stalled, o.target.name)
			continue
		}
		o.served = append(o.served, took)
		slowest = max(slowest, took)
	}
	if len(stalled) > 0 || slowest > 2*s.timeout {
		s.tellWaiting(healed + int64(2*s.timeout))
	}
	if len(stalled) > 0 {
		return fmt.Sprintf("%v; somebody not served within %v: %v", r, s.stall(), stalled)
	}
	return fmt.Sprintf("%v; everybody served after %v", r, slowest.Round(time.Millisecond))
}

// finish checks that all works after the last healing, and that nothing is left.
func (s *site) finish(c contestant, all []*outcome) {
	s.t.Helper()
	patience := perhaps
	if c.ours {
		patience = certainly
	}
	s.heal()
	healed := now()
	for i, took := range s.served(healed, patience) {
		if took < 0 && c.ours {
			all[i].fault("somebody is not served, %v after the last healing", since(healed))
			s.tellWaiting(healed)
		}
	}
	for i, waiting := range s.rest(patience) {
		if waiting > 0 && c.ours {
			all[i].fault("%d contenders do not come to rest", waiting)
		}
		// All sessions are open. A waiter that cannot be told to stop has one node.
		all[i].orphans = s.left(s.targets[i], waiting, patience)
	}
	s.alone(all, patience)
	ended := s.crew.end(patience)
	for _, err := range ended {
		s.t.Logf("%s: %v", c.name, err)
	}
	if !c.ours {
		return
	}
	for _, err := range ended {
		all[0].fault("%v", err) // it has met all of them
	}
	for i, o := range all {
		if o.orphans > 0 {
			o.fault("%d nodes left while the workers rest", o.orphans)
		}
		if n := s.left(s.targets[i], 0, patience); n > 0 {
			o.fault("%d nodes left after the workers' end", n)
		}
	}
}
