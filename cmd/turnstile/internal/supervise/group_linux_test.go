package supervise

import "testing"

func TestInGroup(t *testing.T) {
	for stat, want := range map[string]bool{
		"7 (sh) S 1 42 7 0":       true,
		"7 (a) Z 1 42) R 1 42 7":  true,
		"7 (sh) D 1 42 7 0":       true,
		"7 (sh) T 1 42 7 0":       true,
		"7 (sh) Z 1 42 7 0":       false,
		"7 (sh) X 1 42 7 0":       false,
		"7 (sh) S 42 1 7 0":       false,
		"7 (sh) S 1 421 7 0":      false,
		"7 (a) S 1 42 7) Z 1 42 ": false,
		"":                        false,
	} {
		if got := inGroup([]byte(stat), 42); got != want {
			t.Errorf("%q: %v, want %v", stat, got, want)
		}
	}
}
