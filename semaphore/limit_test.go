package semaphore

import (
	"testing"

	"github.com/turnstile-go/turnstile/queue"
)

// A limit that was written by a state before, or by hand, is read. What a limit is written as, states before 0.1.0 take for a
// limit that nobody has lowered and nobody has set by hand: it has no former limits, and the version that the data gets.
func TestLimitData(t *testing.T) {
	for data, want := range map[string]limit{
		`{"maxLeases":3,"default":true,"version":1}`:                                                     {3, true, 1},
		`{"maxLeases":2,"former":[{"maxLeases":5,"until":77},{"maxLeases":3}],"lowered":-1,"version":4}`: {2, false, 4},
		`{"maxLeases":2,"former":[{"maxLeases":3}],"lowered":81,"version":2}`:                            {2, false, 2},
		`{"maxLeases":7}`: {MaxLeases: 7},
	} {
		if got, ours := new(Semaphore).limitIn([]byte(data)); !ours || got != want {
			t.Errorf("%s: %+v, %v, want %+v", data, got, ours, want)
		}
	}
	for want, l := range map[string]limit{
		`{"maxLeases":3,"default":true,"version":1}`: {MaxLeases: 3, Default: true, Version: 1},
		`{"maxLeases":2,"version":4}`:                {MaxLeases: 2, Version: 4},
	} {
		if got := string(l.encode()); got != want {
			t.Errorf("%+v: %s, want %s", l, got, want)
		}
	}
}

// The limit decides who may go, and whether New was given another one.
func TestPolicyOfLimit(t *testing.T) {
	s := &Semaphore{max: 3}
	me := queue.Node{Weight: 2}
	for data, slack := range map[string]int{
		`{"maxLeases":3,"default":true,"version":1}`: 1,
		`{"maxLeases":7}`:             5,
		`{"maxLeases":1,"version":3}`: -1,
		"a user's":                    1,
	} {
		if p, err := s.policy(me, queue.Config{Data: []byte(data)}); err != nil || p.Slack != slack || p.Weight(me) != 2 {
			t.Errorf("%s: slack %d, %v, want %d", data, p.Slack, err, slack)
		}
	}
	if _, err := s.policy(me, queue.Config{Data: []byte(`{"maxLeases":4,"default":true}`)}); err == nil {
		t.Error("another limit that New was given is no error")
	}
}
