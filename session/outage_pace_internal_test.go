package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// paced runs an outage of one hour in which each second brings a failure. It returns the times of
// the notices, in seconds, and what they said.
func paced(failing func(second int) (addr string, f *failure)) (at []int, said []string) {
	var o outage
	start := time.Unix(0, 0)
	o.begin(start)
	for second := range 3600 {
		now := start.Add(time.Duration(second) * time.Second)
		if addr, f := failing(second); f != nil {
			o.failed(now, addr, f)
		}
		if !now.Before(o.due()) {
			at, said = append(at, second), append(said, o.notice(now, nil).Error())
		}
	}
	return at, said
}

func dialFailure(to, why string) *failure { return &failure{stepDial, to, errors.New(why)} }

// Notices come after waits that double.
func TestOutagePace(t *testing.T) {
	at, _ := paced(func(int) (string, *failure) { return "zk1", dialFailure("zk1", "refused") })
	if got, want := fmt.Sprint(at), "[2 6 14 30 62 126 254 510 1022 1622 2222 2822 3422]"; got != want {
		t.Errorf("notices after %s s, want %s", got, want)
	}
}

// A failure of a new kind brings a notice early, and puts off no other. Other numbers, such as those
// of a port, make no new kind.
func TestOutageNews(t *testing.T) {
	at, said := paced(func(second int) (string, *failure) {
		switch {
		case second == 700:
			return "zk2", dialFailure("zk2", "not trusted")
		case second >= 701 && second < 710:
			return "zk2", dialFailure("zk2", fmt.Sprintf("port %d not trusted", second))
		}
		return "zk1", dialFailure("zk1", fmt.Sprintf("refused %d", second))
	})
	got, want := fmt.Sprint(at), "[2 6 14 30 62 126 254 510 700 704 1022 1622 2222 2822 3422]"
	if got != want {
		t.Errorf("notices after %s s, want %s", got, want)
	}
	if !strings.Contains(said[8], "zk2: not trusted") {
		t.Errorf("the early notice: %s", said[8])
	}
	if last := said[len(said)-1]; strings.Contains(last, "zk2") {
		t.Errorf("failures of an hour ago: %s", last)
	}
}

// A server that fails in a new way each time does not fill the log.
func TestOutageEverNew(t *testing.T) {
	at, _ := paced(func(second int) (string, *failure) {
		return "zk1", dialFailure("zk1", strings.Repeat("x", second))
	})
	if len(at) != 13+mostEarly {
		t.Errorf("%d notices, want %d", len(at), 13+mostEarly)
	}
	for i := range at[1:] {
		if gap := at[i+1] - at[i]; gap < int(leastGap/time.Second) && at[i+1] > 60 {
			t.Errorf("a notice %d s after another", gap)
		}
	}
}

// Without an outage nothing is kept, and an outage that begins twice goes on.
func TestOutageBeginsAndEnds(t *testing.T) {
	var o outage
	now := time.Unix(0, 0)
	o.failed(now, "zk1", dialFailure("zk1", "refused"))
	if took, notices := o.end(now); o.why != nil || took != 0 || notices != 0 {
		t.Errorf("%v: %v, %d notices", o.why, took, notices)
	}
	o.begin(now)
	o.begin(now.Add(time.Hour))
	if took, _ := o.end(now.Add(2 * time.Hour)); took != 2*time.Hour {
		t.Errorf("an outage of %v", took)
	}
}
