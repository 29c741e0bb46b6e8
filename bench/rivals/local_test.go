package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
)

// fakes is a connection whose locks note their workers.
type fakes struct {
	used []int
	at   time.Time // when a lock has entered
}

func (f *fakes) Close() error { return nil }

func (f *fakes) Lock(_ context.Context, _ plan, worker int) (lock, error) {
	return lock{
		lock: func(context.Context) error {
			f.used = append(f.used, worker)
			return nil
		},
		unlock:  func(context.Context) error { return nil },
		entered: func() time.Time { return f.at },
	}, nil
}

func fakeTeam(t *testing.T, p plan) (*fakes, team) {
	t.Helper()
	f := &fakes{}
	made, err := openLocal(t.Context(), p, func(context.Context, string, plan) (connection, error) { return f, nil })
	if err != nil {
		t.Fatal(err)
	}
	return f, made
}

// The sessions of a team are spread over the servers, in their order.
func TestServerOfSession(t *testing.T) {
	var got []string
	p := plan{kind: mutex, servers: "a:1,b:2,c:3", sessions: 5, workers: 5}
	connect := func(_ context.Context, server string, _ plan) (connection, error) {
		got = append(got, server)
		return &fakes{}, nil
	}
	if _, err := openLocal(t.Context(), p, connect); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a:1", "b:2", "c:3", "a:1", "b:2"}; !slices.Equal(got, want) {
		t.Errorf("connected to %v, want %v", got, want)
	}
}

// Workers that take turns alternate strictly.
func TestTurns(t *testing.T) {
	for turns, want := range map[int][]int{1: {0, 1, 0, 1, 0, 1, 0, 1}, 2: {0, 0, 1, 1, 0, 0, 1, 1}} {
		f, made := fakeTeam(t, plan{kind: mutex, sessions: 1, workers: 2, turns: turns})
		o, err := made.Cycles(t.Context(), 4, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.used, want) || len(o.cycles) != len(want) {
			t.Errorf("turns of %d: %v in %d cycles, want %v", turns, f.used, len(o.cycles), want)
		}
	}
}

// The row of the wait behind a kept place measures only locks that had to wait.
func TestWaitFromEntry(t *testing.T) {
	f, made := fakeTeam(t, plan{kind: mutex, sessions: 1, workers: 2, turns: 2})
	for _, c := range []struct {
		at    time.Time
		waits int
	}{{time.Time{}, 0}, {time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 4}} {
		f.at = c.at
		o, err := made.Cycles(t.Context(), 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.gaps) != c.waits {
			t.Errorf("entered at %v: %d waits, want %d", c.at, len(o.gaps), c.waits)
		}
	}
}

func TestEntry(t *testing.T) {
	var e entry
	hooks := e.trace()
	acquire := func(position int) time.Time {
		_, acquired := hooks.Acquire(t.Context(), session.AcquireInfo{})
		for _, op := range []string{"create", "getChildren"} {
			if _, answered := hooks.Request(t.Context(), session.RequestInfo{Op: op}); answered != nil {
				answered(nil)
			}
		}
		acquired(session.AcquireResult{Position: position})
		return e.last()
	}
	before := time.Now()
	if got := acquire(1); got.Before(before) || got.After(time.Now()) {
		t.Errorf("behind another it entered at %v", got)
	}
	for _, position := range []int{0, -1} {
		if got := acquire(position); !got.IsZero() {
			t.Errorf("with position %d it entered at %v, want never", position, got)
		}
	}
}

// About a fiftieth of the uses is of others' locks. The rest is of all locks of one's own, as often each.
func TestMostlyOwn(t *testing.T) {
	const uses = 1_000_000
	p := plan{path: "/p", workers: 10, locks: 100}
	count := map[string]int{}
	l := mostlyOwn(p, 3, func(where string) (lock, error) {
		use := func(context.Context) error {
			count[where]++
			return nil
		}
		return lock{lock: use, unlock: use}, nil
	})
	for range uses {
		if err := l.lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	others, mine := 0, 0
	for where, n := range count {
		if len(where) != len("/p/300") || !strings.HasPrefix(where, "/p/3") {
			others += n / 2
			continue
		}
		mine++
		if n/2 < uses/p.locks*9/10 || n/2 > uses/p.locks {
			t.Errorf("%s was used %d times", where, n/2)
		}
	}
	if mine != p.locks || len(count) != p.locks*p.workers {
		t.Errorf("%d of its own locks, and %d in all", mine, len(count))
	}
	if others < uses*19/1000 || others > uses*21/1000 {
		t.Errorf("%d of %d uses were of others' locks", others, uses)
	}
}

// One of so many cycles writes, and the writes of the workers are spread.
func TestWrites(t *testing.T) {
	for _, every := range []int{10, 100, 1000} {
		p := plan{workers: 10, every: every}
		writes := 0
		for k := range every / p.workers {
			for worker := range p.workers {
				if p.writes(worker, k) {
					writes++
				}
			}
		}
		if writes != 1 {
			t.Errorf("%d writes among the first %d cycles", writes, every)
		}
	}
	if !(plan{workers: 1}).writes(0, 5) {
		t.Error("the cycles of a lock that has no readers do not write")
	}
}
