package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/wire"
)

// Callers who share an answer decode it once, and may each change what they get.
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
	for range 2 {
		one := r
		got, err := decoded(&one, decode)
		if err != nil || !cmp.Equal(got.names, []string{"b", "a"}) || got.stat.Czxid != 7 {
			t.Errorf("got %v, %v, %v", got.names, got.stat, err)
		}
		got.names[0], got.stat.Czxid = "changed", 8
	}
	if count != 1 {
		t.Errorf("decoded %d times, want once", count)
	}
}
