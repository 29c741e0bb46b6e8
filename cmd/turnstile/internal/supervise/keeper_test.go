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
