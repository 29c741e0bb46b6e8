//go:build linux

package clockoverlap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
)

// tally counts the tries of each kind.
type tally struct {
	kinds []kind
	of    map[kind]*count
}

type count struct {
	tries    int
	early    int // lost before the cut
	overlaps int
	by       time.Duration // at most
	first    time.Duration // by how much the holder knew before its rival was in, at least
}

func newTally(kinds []kind) tally {
	ts := tally{kinds, make(map[kind]*count)}
	for _, k := range kinds {
		ts.of[k] = &count{first: time.Hour}
	}
	return ts
}

func (ts tally) add(holders []*holder) {
	for _, h := range holders {
		c := ts.of[h.kind]
		switch {
		case h.overlap:
			c.tries++
			c.overlaps++
			c.by = max(c.by, h.by)
		case h.early:
			c.early++
		default:
			c.tries++
			c.first = min(c.first, h.granted.Sub(h.lost))
		}
	}
}

// mustHold logs the tries and overlaps of each kind, and fails for overlaps.
func (ts tally) mustHold(t *testing.T) {
	ts.report(t)
	for _, k := range ts.kinds {
		if n := ts.of[k].overlaps; n > 0 {
			t.Errorf("%v: %d times a rival got the lock while its holder believed in it", k, n)
		}
	}
}

// mustBreak logs the same, and fails if there was no overlap.
func (ts tally) mustBreak(t *testing.T) {
	ts.report(t)
	for _, k := range ts.kinds {
		if ts.of[k].overlaps > 0 {
			return
		}
	}
	t.Error("no overlap: these tries would not show one")
}

// report logs the tries and overlaps of each kind, and fails if there were none.
func (ts tally) report(t *testing.T) {
	all, overlaps := 0, 0
	for _, k := range ts.kinds {
		all += ts.of[k].tries
		overlaps += ts.of[k].overlaps
		t.Logf("%v: %v", k, ts.of[k])
	}
	longtest.Covered(t, "%s: %d tries, %d overlaps", t.Name(), all, overlaps)
	if all == 0 {
		t.Error("no holder was cut off: nothing is proven")
	}
}

func (c *count) String() string {
	text := fmt.Sprintf("%d tries, %d overlaps, %d lost early", c.tries, c.overlaps, c.early)
	if c.overlaps > 0 {
		text += fmt.Sprintf("; overlaps of up to %v", c.by.Round(time.Millisecond))
	}
	if c.overlaps < c.tries {
		text += fmt.Sprintf("; otherwise known %v before the rival at least", c.first.Round(time.Millisecond))
	}
	return text
}

// describe returns the result of one cut, a line for each kind.
func describe(kinds []kind, holders []*holder) string {
	var b strings.Builder
	b.WriteString("how long before the rival the holder knew:")
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n\t%v:", k)
		for _, h := range holders {
			switch {
			case h.kind != k:
			case h.overlap:
				fmt.Fprintf(&b, "  %s OVERLAP of %v", h.style, h.by.Round(time.Millisecond))
			case h.early:
				fmt.Fprintf(&b, "  %s lost early", h.style)
			default:
				fmt.Fprintf(&b, "  %s %v", h.style, h.granted.Sub(h.lost).Round(time.Millisecond))
			}
		}
	}
	return b.String()
}
