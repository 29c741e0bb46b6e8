package logbook

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// paced runs an outage of one hour in which each second brings a failure. It returns the times of
// the notices, in seconds, and what they said.
func paced(failing func(second int) *Failure) (at []int, said []string) {
	var o outage
	start := time.Unix(0, 0)
	o.begin(start)
	for second := range 3600 {
		now := start.Add(time.Duration(second) * time.Second)
		if f := failing(second); f != nil {
			o.failed(now, f)
		}
		if !now.Before(o.due()) {
			at, said = append(at, second), append(said, o.notice(now, nil).Error())
		}
	}
	return at, said
}

func dialFailure(host, why string) *Failure {
	return &Failure{StepDial, Target{Host: host}, errors.New(why)}
}

// Notices come after waits that double.
func TestOutagePace(t *testing.T) {
	at, _ := paced(func(int) *Failure { return dialFailure("zk1", "refused") })
	if got, want := fmt.Sprint(at), "[2 6 14 30 62 126 254 510 1022 1622 2222 2822 3422]"; got != want {
		t.Errorf("notices after %s s, want %s", got, want)
	}
}

// A failure of a new kind brings a notice early, and puts off no other. Other numbers, such as those
// of a port, make no new kind.
func TestOutageNews(t *testing.T) {
	at, said := paced(func(second int) *Failure {
		switch {
		case second == 700:
			return dialFailure("zk2", "not trusted")
		case second >= 701 && second < 710:
			return dialFailure("zk2", fmt.Sprintf("port %d not trusted", second))
		}
		return dialFailure("zk1", fmt.Sprintf("refused %d", second))
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
	at, _ := paced(func(second int) *Failure {
		return dialFailure("zk1", strings.Repeat("x", second))
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
	o.failed(now, dialFailure("zk1", "refused"))
	if took, notices := o.end(now); o.why != nil || took != 0 || notices != 0 {
		t.Errorf("%v: %v, %d notices", o.why, took, notices)
	}
	o.begin(now)
	o.begin(now.Add(time.Hour))
	if took, _ := o.end(now.Add(2 * time.Hour)); took != 2*time.Hour {
		t.Errorf("an outage of %v", took)
	}
}

// An outage in which a server fails in ever new ways does not grow without end.
func TestOutageIsBounded(t *testing.T) {
	var o outage
	now := time.Now()
	o.begin(now)
	for i := range 10 * mostTold {
		f := dialFailure("zk", strings.Repeat("x", i+1))
		now = now.Add(time.Second)
		o.failed(now, f)
		if first := o.isNew(f); first != (i < mostTold) {
			t.Fatalf("the %dth kind of failure is new: %v", i+1, first)
		}
	}
	if len(o.told) > mostTold || len(o.why) > 1 {
		t.Errorf("%d kinds of failures, %d addresses", len(o.told), len(o.why))
	}
}

// Names that could not be resolved are told apart, although they have no address. The slice of the caller stays as
// it is.
func TestOutageOfNames(t *testing.T) {
	var o outage
	now := time.Unix(0, 0)
	o.begin(now)
	unknown := func(host string) *Failure { return &Failure{StepLookup, Target{Host: host}, errors.New("unknown")} }
	o.failed(now, unknown("zk1"))
	o.failed(now, unknown("zk2"))
	names := []*Failure{unknown("zk2"), nil}
	if got, want := o.notice(now, names[:1]).Error(), "lookup zk2: unknown; lookup zk1: unknown"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if names[1] != nil {
		t.Errorf("%v was written behind the names", names[1])
	}
}
