//go:build linux || darwin || freebsd

package supervise

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// The guard understands orders that come in any pieces.
func TestKeeperReads(t *testing.T) {
	text := slices.Concat(line(order{Until: 1000}), line(order{Until: 2000, Kill: true}), line(order{Done: true}))
	for cut := range len(text) {
		var k keeper
		k.read(text[:cut])
		if k.done {
			t.Errorf("done after %q", text[:cut])
		}
		k.read(text[cut:])
		if !k.done || !k.kill || k.until != 2000 {
			t.Errorf("cut at %d: %+v", cut, k)
		}
	}
}

// A command that comes too late, or after the order to kill, is not started.
func TestKeeperLate(t *testing.T) {
	for what, k := range map[string]*keeper{"late": {}, "killed": {kill: true}} {
		s := start{Deadline: clock(), Path: []byte("/nonsense")}
		if what == "killed" {
			s.Deadline += time.Hour
		}
		k.obey(order{Start: &s})
		var r report
		if err := json.Unmarshal(k.out, &r); err != nil || !r.Late || k.tree.id != 0 {
			t.Errorf("%s: %s, %v: want a report that it is late", what, k.out, err)
		}
	}
}

// A guard that has nothing left to do rests, also if its deadline has passed: turnstile can be stopped for days.
func TestKeeperRests(t *testing.T) {
	for what, k := range map[string]*keeper{
		"all are dead": {pipe: -1, until: 1, kill: true, tree: tree{id: 1 << 30, childless: true, ended: true}},
		"no command":   {pipe: -1, until: 1, tree: tree{childless: true}},
	} {
		began := time.Now()
		k.wait(-1)
		if d := time.Since(began); d < guardPoll/2 {
			t.Errorf("%s: the guard looks again after %v", what, d)
		}
	}
}
