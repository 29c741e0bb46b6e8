package longtest

import (
	"flag"
	"testing"
)

// skips is a test that notes that it is to be skipped.
type skips struct {
	testing.TB
	skipped bool
}

func (s *skips) Skip(...any) { s.skipped = true }

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
