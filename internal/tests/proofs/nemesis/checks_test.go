//go:build linux

package nemesis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/go-zookeeper/zk"
)

// written is a journal that is written by hand: turns of workers of one life.
type written struct{ events []event }

func (h *written) add(e event) { h.events = append(h.events, e) }

// look adds one look of the first turn of a worker.
func (h *written) look(worker int, from, to int64, held bool) {
	h.add(event{Worker: worker, Life: 1, Turn: 1, What: eventLook, From: from, To: to, Held: held})
}

func (h *written) free(worker int, from, to int64) {
	h.add(event{Worker: worker, Life: 1, Turn: 1, What: eventFree, From: from, To: to})
}

// holds adds a turn with two looks, and its token in between. Its release has not returned.
func (h *written) holds(worker int, c claim, token, from, to int64) (turn int) {
	turn = len(h.events) + 1
	for _, e := range []event{
		{What: eventGot, From: from - 1, To: from},
		{What: eventLook, From: from, To: from + 1, Held: true},
		{What: eventToken, From: from + 1, To: from + 1, Token: token},
		{What: eventLook, From: to - 1, To: to, Held: true},
	} {
		e.Worker, e.Life, e.Turn, e.claim = worker, 1, turn, c
		h.add(e)
	}
	return turn
}

// uses adds a turn that is over when it has been released.
func (h *written) uses(worker int, c claim, token, from, to int64) {
	turn := h.holds(worker, c, token, from, to)
	h.add(event{Worker: worker, Life: 1, Turn: turn, What: eventFree, From: to, To: to + 1, claim: c})
}

// leases adds a hold of n leases.
func (h *written) leases(worker, n int, from, to int64) {
	h.uses(worker, claim{Weight: n}, 0, from, to)
}

func (h *written) writes(worker int, token, from, to int64) { h.uses(worker, claim{}, token, from, to) }

func (h *written) reads(worker int, token, from, to int64) {
	h.uses(worker, claim{Weight: 1}, token, from, to)
}

// downgrades adds a hold that is a writer's up to a time, and a reader's after that.
func (h *written) downgrades(worker int, from, until, to int64) {
	turn := h.holds(worker, claim{}, 0, from, until)
	for _, e := range []event{
		{What: eventDown, From: until, To: until + 1},
		{What: eventLook, From: until + 1, To: until + 2, Held: true},
		{What: eventLook, From: to - 1, To: to, Held: true},
		{What: eventFree, From: to, To: to + 1},
	} {
		e.Worker, e.Life, e.Turn, e.claim = worker, 1, turn, claim{Weight: 1}
		h.add(e)
	}
}

var (
	mutexRule  = rule{}
	sharedRule = rule{shared: true}
	rwRule     = rule{limit: unlimited}
	keptRWRule = rule{limit: unlimited, shared: true}
	semRule    = rule{limit: 3}
)

// TestNemesis relies on this: the checks find violations, and nothing in a correct history.
func TestChecks(t *testing.T) {
	died := func(at ...int64) map[lifeID]int64 {
		deaths := make(map[lifeID]int64)
		for worker, when := range at {
			deaths[lifeID{worker, 1}] = when
		}
		return deaths
	}
	nobody := claim{}
	for name, tt := range map[string]struct {
		rule
		write  func(*written)
		deaths map[lifeID]int64
		wrong  bool
	}{
		"one after another":  {rule: mutexRule, write: func(h *written) { h.writes(0, 1, 10, 20); h.writes(1, 2, 24, 30) }},
		"two at once":        {rule: mutexRule, write: func(h *written) { h.writes(0, 1, 10, 20); h.writes(1, 2, 15, 30) }, wrong: true},
		"one during another": {rule: mutexRule, write: func(h *written) { h.writes(1, 2, 15, 18); h.writes(0, 1, 10, 40) }, wrong: true},
		"lost, and knew it": {rule: mutexRule, write: func(h *written) {
			h.look(0, 10, 11, true)
			h.look(0, 19, 20, true)
			h.writes(1, 2, 30, 40)
			h.look(0, 50, 51, false)
			h.free(0, 52, 53)
		}},
		"stopped, and did not know": {rule: mutexRule, write: func(h *written) {
			h.look(0, 10, 11, true)
			h.writes(1, 2, 30, 40)
			h.look(0, 50, 51, true)
			h.free(0, 52, 53)
		}, wrong: true},
		"one look each, at once": {rule: mutexRule, write: func(h *written) {
			h.look(0, 10, 20, true)
			h.free(0, 30, 31)
			h.look(1, 11, 21, true)
			h.free(1, 12, 22)
		}},
		"tokens fall":                      {rule: mutexRule, write: func(h *written) { h.writes(0, 2, 10, 20); h.writes(1, 1, 30, 40) }, wrong: true},
		"killed":                           {rule: mutexRule, write: func(h *written) { h.holds(0, nobody, 1, 10, 20); h.holds(1, nobody, 2, 30, 40) }, deaths: died(25, 99)},
		"a token again, in one process":    {rule: sharedRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }},
		"a token again, in two":            {rule: sharedRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(2, 7, 30, 40) }, wrong: true},
		"a token again, of a mutex":        {rule: mutexRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }, wrong: true},
		"a writer's token again":           {rule: keptRWRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }},
		"a writer's token again, in two":   {rule: keptRWRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(2, 7, 30, 40) }, wrong: true},
		"a writer's token again, not kept": {rule: rwRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }, wrong: true},
		"two keys":                         {rule: mutexRule, write: func(h *written) { h.uses(1, claim{Of: 1}, 7, 10, 30); h.uses(2, claim{Of: 2}, 7, 20, 40) }},
		"one key":                          {rule: mutexRule, write: func(h *written) { h.uses(1, claim{Of: 2}, 7, 10, 30); h.uses(2, claim{Of: 2}, 8, 20, 40) }, wrong: true},

		"readers together, then writers one by one": {rule: rwRule, write: func(h *written) {
			h.reads(0, 1, 10, 30)
			h.reads(1, 2, 11, 40)
			h.reads(2, 3, 12, 20)
			h.writes(0, 4, 50, 60)
			h.writes(1, 5, 70, 80)
			h.reads(0, 6, 90, 95)
		}},
		"two writers":              {rule: rwRule, write: func(h *written) { h.writes(0, 1, 10, 30); h.writes(1, 2, 20, 40) }, wrong: true},
		"a reader beside a writer": {rule: rwRule, write: func(h *written) { h.writes(0, 1, 10, 30); h.reads(1, 2, 20, 40) }, wrong: true},
		"a writer beside a reader": {rule: rwRule, write: func(h *written) {
			h.reads(1, 1, 10, 30)
			h.reads(2, 2, 11, 12)
			h.writes(0, 3, 20, 40)
		}, wrong: true},
		"a reader during a writer": {rule: rwRule, write: func(h *written) { h.writes(0, 1, 10, 90); h.reads(1, 2, 20, 40) }, wrong: true},
		"a downgrade, with readers and then a writer": {rule: rwRule, write: func(h *written) {
			h.downgrades(0, 10, 30, 60)
			h.reads(1, 2, 40, 70)
			h.writes(2, 3, 80, 90)
		}},
		"a reader before the downgrade": {rule: rwRule, write: func(h *written) { h.downgrades(0, 10, 30, 60); h.reads(1, 2, 20, 70) }, wrong: true},
		"a writer after the downgrade":  {rule: rwRule, write: func(h *written) { h.downgrades(0, 10, 30, 60); h.writes(1, 2, 40, 70) }, wrong: true},
		"a writer in the middle of the downgrade": {rule: rwRule, write: func(h *written) {
			h.downgrades(0, 10, 30, 60)
			h.look(1, 30, 31, true)
			h.free(1, 31, 32)
		}, wrong: true},
		"a writer's token is old":                   {rule: rwRule, write: func(h *written) { h.reads(0, 5, 10, 20); h.writes(1, 4, 30, 40) }, wrong: true},
		"a reader's token is older than a writer's": {rule: rwRule, write: func(h *written) { h.writes(0, 5, 10, 20); h.reads(1, 4, 30, 40) }, wrong: true},
		"readers in any order":                      {rule: rwRule, write: func(h *written) { h.reads(0, 5, 10, 20); h.holds(1, claim{Weight: 1}, 0, 30, 40) }},

		"as many as there are": {rule: semRule, write: func(h *written) {
			h.leases(1, 2, 10, 30)
			h.leases(2, 1, 11, 30)
			h.leases(3, 3, 40, 50)
		}},
		"one too many": {rule: semRule, write: func(h *written) { h.leases(1, 2, 10, 30); h.leases(2, 2, 20, 40) }, wrong: true},
		"killed with its leases": {rule: semRule, write: func(h *written) {
			h.holds(1, claim{Weight: 3}, 0, 10, 20)
			h.leases(2, 3, 30, 40)
		}, deaths: died(99, 28, 99)},
		"leases that were lost, and did not know": {rule: semRule, write: func(h *written) { h.leases(1, 1, 10, 60); h.leases(2, 3, 20, 40) }, wrong: true},
	} {
		var h written
		tt.write(&h)
		v := judge(tt.rule, h.events, tt.deaths)
		if got := len(v.violations) > 0; got != tt.wrong || len(v.other) > 0 {
			t.Errorf("%s: violations %q and %q, want some: %v", name, v.violations, v.other, tt.wrong)
		}
	}
	one := []event{{What: eventMissed, Error: "lock /a: " + errNoToken.Error()}, {What: eventMissed, Error: fmt.Errorf("lock /a: %w", zk.ErrNoAuth).Error()}}
	if v := judge(mutexRule, one, nil); len(v.other) != 1 {
		t.Errorf("%q, want one stranger", v.other)
	}
}

// A history that is checked in pieces is checked as if in one, with what the pieces before it leave behind.
func TestPieces(t *testing.T) {
	for name, tt := range map[string]struct {
		rule
		write func(h *written, i int64)
		first func(h *written)
		wrong func(h *written)
	}{
		"mutex": {mutexRule,
			func(h *written, i int64) { h.writes(1, i+2, 100*i+10, 100*i+30) },
			func(h *written) { h.writes(2, 1, 1, 2) },
			func(h *written) { h.writes(2, 1, 300*pieceSize+1, 300*pieceSize+2) }, // its token is of the first piece
		},
		"rwlock": {rwRule,
			func(h *written, i int64) { h.reads(1, i+2, 100*i+10, 100*i+60); h.reads(2, i+2, 100*i+20, 100*i+70) },
			func(h *written) { h.reads(4, 1, 1, math.MaxInt32) },
			func(h *written) { h.writes(3, 0, 100*pieceSize+80, 100*pieceSize+90) }, // beside the reader of the first piece
		},
		"semaphore": {semRule,
			func(h *written, i int64) { h.leases(2, 1, 100*i+60, 100*i+70) },
			func(h *written) { h.leases(1, 1, 2, math.MaxInt32) },
			func(h *written) { h.leases(3, 3, 100*pieceSize+52, 100*pieceSize+53) },
		},
	} {
		var h written
		tt.first(&h)
		for i := range int64(3 * pieceSize) {
			tt.write(&h, i)
		}
		check := func() []string {
			bad, _ := linearizable(history(spans(h.events, nil)[0]), tt.rule)
			return bad
		}
		if bad := check(); len(bad) > 0 {
			t.Errorf("%s: %q", name, bad)
		}
		tt.wrong(&h)
		if bad := check(); len(bad) != 1 {
			t.Errorf("%s: found %q, want one", name, bad)
		}
	}
	if n := quiet([]porcupine.Operation{{Call: 1, Return: 5}, {Call: 2, Return: 3}, {Call: 5, Return: 6}, {Call: 7, Return: 8}}, 1); n != 3 {
		t.Errorf("a piece of %d operations, want 3", n)
	}
}

// The resolver gives all sorts of answers, and leaves those that it has given as they are.
func TestResolver(t *testing.T) {
	servers := []string{"a", "b", "c"}
	r := resolver{servers, rand.New(rand.NewPCG(1, 2))}
	found := make(map[string]bool)
	for range 200 {
		some, err := r.resolve(t.Context())
		found[fmt.Sprint(some, err)] = true
	}
	if !found[fmt.Sprint(servers, nil)] || !found[fmt.Sprint([]string(nil), errResolver)] || len(found) != 9 {
		t.Errorf("answers: %v", found)
	}
}

// A table keeps the rows of schedules that have not been run.
func TestTable(t *testing.T) {
	old := head + "| a/x | one | 1 | 2 | 0 | 0 | f | then |\n| b/x | one | 1 | 2 | 0 | 0 | f | then |\n\nno row\n"
	want := head + "| a/x | one | 1 | 2 | 0 | 0 | f | then |\n| b/x | two | 3 | 4 | 0 | 1 | g | now |\n"
	if got := table([]row{{schedule: "b/x", what: "two", faults: 3, holds: 4, other: []string{"x"}, figures: "g", made: "now"}}, old); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
