package session

import (
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Callers that share an answer decode it once, and get the same names. Thousands of copies of thousands of names would take
// gigabytes.
func TestSharedAnswer(t *testing.T) {
	e := wire.NewFrame()
	e.Strings([]string{"b", "a"})
	for range 9 {
		e.Int64(7) // more than a stat
	}
	count := 0
	decode := func(d *wire.Decoder) (children, error) {
		count++
		return children{d.Strings(), decodeStat(d)}, nil
	}
	r := wire.Reply{Body: wire.Decoder{Rest: e.Frame()[4:]}, Shared: new(any)}
	var all [2]children
	for i := range all {
		one := r
		c, err := decoded(&one, decode)
		if err != nil || !slices.Equal(c.names, []string{"b", "a"}) || c.stat.Czxid != 7 {
			t.Errorf("got %v, %v, %v", c.names, c.stat, err)
		}
		all[i] = c
	}
	if count != 1 || &all[0].names[0] != &all[1].names[0] {
		t.Errorf("decoded %d times, want once for both", count)
	}
}
