//go:build linux

package clock

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// tally counts the tries of each kind.
type tally map[kind]*count

type count struct {
	tries    int
	early    int // lost before the cut
	overlaps int
	by       time.Duration // at most
	first    time.Duration // by how much the holder knew before its rival was in, at least
}

func newTally() tally {
	ts := make(tally)
	for _, k := range kinds() {
		ts[k] = &count{first: time.Hour}
	}
	return ts
}

func (ts tally) add(holders []*holder) {
	for _, h := range holders {
		c := ts[h.kind]
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

// report logs the tries and overlaps of each kind, and fails for overlaps.
func (ts tally) report(t *testing.T) {
	all := 0
	for _, k := range kinds() {
		c := ts[k]
		all += c.tries
		t.Run(strings.ReplaceAll(k.String(), ", ", "_"), func(t *testing.T) {
			t.Log(c)
			if c.overlaps > 0 {
				t.Errorf("%d times a rival got the lock while its holder believed in it", c.overlaps)
			}
		})
	}
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
func describe(holders []*holder) string {
	var b strings.Builder
	b.WriteString("how long before the rival the holder knew:")
	for _, k := range kinds() {
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
