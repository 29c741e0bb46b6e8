package longtest

import (
	"flag"
	"slices"
	"strconv"
	"testing"
)

// skips is a test that notes that it is to be skipped.
type skips struct {
	testing.TB
	skipped bool
}

func (s *skips) Skip(...any) { s.skipped = true }

// Each salt chooses about one name in n, and another salt chooses others.
func TestChosen(t *testing.T) {
	const names, salts, n = 200, 50, 10
	in := make([]int, names) // in how many samples each name is
	for salt := range salts {
		size := 0
		for name := range names {
			if Chosen(strconv.Itoa(salt), strconv.Itoa(name), n) {
				in[name]++
				size++
			}
		}
		if size < names/n/3 || size > names/n*3 {
			t.Errorf("salt %d chooses %d of %d names", salt, size, names)
		}
	}
	for name, times := range in {
		if times > salts/2 {
			t.Errorf("name %d is in %d of %d samples", name, times, salts)
		}
	}
	if never := len(slices.DeleteFunc(in, func(times int) bool { return times > 0 })); never > names/20 {
		t.Errorf("%d of %d names are in no sample", never, names)
	}
	if !Chosen("", "any", 1) || !Chosen("x", "any", 0) {
		t.Error("one in one is all")
	}
}

func TestOn(t *testing.T) {
	run := flag.Lookup("test.run").Value
	before := run.String()
	defer func() { _ = run.Set(before) }()
	for _, c := range []struct {
		env, run string
		on       bool
	}{
		{"", "", false},
		{"0", "", false},
		{"1", "", true},
		{"", "TestOn", true},
		{"1", "TestOn", true},
	} {
		t.Setenv(Env, c.env)
		if err := run.Set(c.run); err != nil {
			t.Fatal(err)
		}
		if On() != c.on {
			t.Errorf("%s=%q -run %q: On() is %v", Env, c.env, c.run, !c.on)
		}
		if got := Pick(false, true); got != c.on {
			t.Errorf("%s=%q -run %q: Pick(false, true) is %v", Env, c.env, c.run, got)
		}
		s := &skips{TB: t}
		if Only(s); s.skipped == c.on {
			t.Errorf("%s=%q -run %q: Only skips: %v", Env, c.env, c.run, s.skipped)
		}
	}
}
