//go:build linux

package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/report"
)

const (
	lengthEnv = "NEMESIS"      // how long to attack each contestant
	seedEnv   = "NEMESIS_SEED" // of the schedule and of the workers
	rivalEnv  = "RIVAL"        // zk, curator, or all: ours and both

	// When somebody has not been served for so long after healing, that is a stall, and
	// the attack goes on.
	stallAfter = 5 * timeout

	// How long ours may take for what must happen: on any machine.
	certainly = time.Minute
	// How long a rival may, of which nothing must.
	perhaps = 10 * time.Second
)

// contestant is a lock that is attacked.
type contestant struct {
	name    string
	command func(*testing.T) command
	ours    bool // violations fail the test; those of rivals are counted
}

var (
	turnstile = contestant{"turnstile", func(*testing.T) command { return goCommand("turnstile") }, true}
	rivals    = map[string]contestant{
		"zk":      {"zk.Lock", func(*testing.T) command { return goCommand("zk") }, false},
		"curator": {"Curator", curatorCommand, false},
	}
)

// Three servers and five workers are attacked, and what they have written down is checked.
func TestNemesis(t *testing.T) {
	length, seed, contestants := configured(t)
	var all []*outcome
	for _, c := range contestants {
		// Not in a subtest: it is the test that is skipped without a ZooKeeper.
		o := attack(t, c, seed, length)
		o.log(t)
		all = append(all, o)
		if c.ours && (len(o.violations) > 0 || len(o.faults) > 0) {
			t.Errorf("seed %d: %d violations, faults: %q; to attack so again: %s=%v %s=%d go test ./internal/nemesis",
				seed, len(o.violations), o.faults, lengthEnv, length, seedEnv, seed)
		}
	}
	t.Logf("\n%s", table(all))
	if *writeFlag {
		if err := report.Section(filepath.Join("..", "..", "docs", "reliability.md"), "nemesis", table(all)); err != nil {
			t.Error(err)
		}
	}
}

func configured(t *testing.T) (length time.Duration, seed uint64, contestants []contestant) {
	t.Helper()
	length, seed = time.Minute, uint64(time.Now().UnixNano())%1_000_000
	var err error
	if v := os.Getenv(lengthEnv); v != "" {
		if length, err = time.ParseDuration(v); err != nil || length <= 0 {
			t.Fatalf("%s=%q: want a duration, such as 15m", lengthEnv, v)
		}
	}
	if v := os.Getenv(seedEnv); v != "" {
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("%s=%q: want a number", seedEnv, v)
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
	return length, seed, contestants
}

// attack does all to one contestant that the seed says, heals, and judges.
func attack(t *testing.T, c contestant, seed uint64, length time.Duration) *outcome {
	t.Helper()
	s := newSite(t, c.command(t), seed)
	o := &outcome{name: c.name, seed: seed}
	s.heal()
	if _, ok := s.served(0, certainly); !ok {
		t.Fatalf("%s: not everybody is served before anything has gone wrong", c.name)
	}
	began := now()
	for plan := newSchedule(seed, s.timeout); since(began) < length; {
		o.round(t, s, plan.next())
	}
	o.length = since(began)
	o.finish(t, s, c.ours)
	o.judge(t, s)
	return o
}

// round attacks, heals, and sees that everybody is served.
func (o *outcome) round(t *testing.T, s *site, r round) {
	t.Helper()
	s.attack(r)
	s.heal()
	healed := now()
	took, ok := s.served(healed, stallAfter)
	said := fmt.Sprintf("everybody served after %v", took.Round(time.Millisecond))
	if ok {
		o.served = append(o.served, took)
	} else {
		o.stalls++
		said = fmt.Sprintf("somebody not served within %v", stallAfter)
	}
	o.rounds++
	t.Logf("%s, round %d: %v; %s", o.name, o.rounds, r, said)
	if !ok || took > 2*s.timeout {
		s.tellWaiting(healed + int64(2*s.timeout))
	}
}

// finish sees that all works once nothing goes wrong any more, and that nothing is left.
func (o *outcome) finish(t *testing.T, s *site, ours bool) {
	t.Helper()
	patience := perhaps
	if ours {
		patience = certainly
	}
	s.heal()
	healed := now()
	if _, ok := s.served(healed, patience); !ok && ours {
		o.faults = append(o.faults, fmt.Sprintf("somebody is not served, %v after the last healing", since(healed)))
		s.tellWaiting(healed)
	}
	waiting := s.rest(patience)
	if waiting > 0 && ours {
		o.faults = append(o.faults, fmt.Sprintf("%d workers do not come to rest", waiting))
	}
	// With all sessions open. Who waits and cannot be told otherwise has one node.
	o.orphans = s.left(waiting, patience)
	ended := s.crew.end(patience)
	for _, err := range ended {
		t.Logf("%s: %v", o.name, err)
	}
	if !ours {
		return
	}
	for _, err := range ended {
		o.faults = append(o.faults, err.Error())
	}
	if o.orphans > 0 {
		o.faults = append(o.faults, fmt.Sprintf("%d nodes left while the workers rest", o.orphans))
	}
	if n := s.left(0, patience); n > 0 {
		o.faults = append(o.faults, fmt.Sprintf("%d nodes left after the workers' end", n))
	}
}
