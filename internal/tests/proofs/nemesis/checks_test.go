//go:build linux

package nemesis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

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

// leases adds a hold of n leases of a contender that was let in by a listing that it asked for at view.
func (h *written) leases(worker, n int, view, from, to int64) {
	h.uses(worker, claim{Weight: n, View: view}, 0, from, to)
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

// resize adds a Resize that returns at a time, and is settled at another; 0: it is not.
func (h *written) resize(worker, limit int, call, ret, settled int64) {
	e := event{Worker: worker, Life: 1, Turn: len(h.events) + 1, Limit: limit}
	add := func(what string, from, to int64) {
		e.What, e.From, e.To = what, from, to
		h.add(e)
	}
	add(eventResizing, call, call)
	if ret > 0 {
		add(eventResized, call, ret)
	}
	if settled > 0 {
		add(eventSettled, ret, settled)
	}
}

// asks adds a turn of a lock that can refuse, up to an event.
func (h *written) asks(worker int, from int64, last event) {
	turn := []event{{What: eventAsks, From: from, To: from}}
	if last.What == eventFree {
		turn = append(turn, event{What: eventGot, From: from, To: last.From, claim: last.claim})
	}
	for _, e := range append(turn, last) {
		e.Worker, e.Life, e.Turn = worker, 1, 1
		h.add(e)
	}
}

func freed(to int64) event { return event{What: eventFree, From: to - 1, To: to} }

// turnedAway is a refusal with so many others ahead.
func turnedAway(ahead int, from, to int64) event {
	return event{What: eventMissed, From: from, To: to, Refused: &refused{Ahead: ahead, Gone: true}}
}

var (
	mutexRule  = rule{}
	sharedRule = rule{shared: true}
	rwRule     = rule{limit: unlimited}
	keptRWRule = rule{limit: unlimited, shared: true}
	semRule    = rule{limit: 3}
)

const brief = 10 * time.Nanosecond // the timeout of sessions in these histories

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
		write   func(*written)
		deaths  map[lifeID]int64
		excused []forgiven
		overlap bool // more is held than may be
		other   int  // other findings
	}{
		"one after another":  {rule: mutexRule, write: func(h *written) { h.writes(0, 1, 10, 20); h.writes(1, 2, 24, 30) }},
		"two at once":        {rule: mutexRule, write: func(h *written) { h.writes(0, 1, 10, 20); h.writes(1, 2, 15, 30) }, overlap: true, other: 1},
		"one during another": {rule: mutexRule, write: func(h *written) { h.writes(1, 2, 15, 18); h.writes(0, 1, 10, 40) }, overlap: true, other: 1},
		"two, but an operator has ended the session of one": {rule: mutexRule, write: func(h *written) { h.writes(0, 1, 10, 20); h.writes(1, 2, 15, 30) }, excused: []forgiven{{0, 12, 19}}},
		"two, and an operator has ended another session":    {rule: mutexRule, write: func(h *written) { h.writes(0, 1, 10, 20); h.writes(1, 2, 15, 30) }, excused: []forgiven{{2, 12, 19}}, overlap: true, other: 1},
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
		}, overlap: true, other: 1},
		"one look each, at once": {rule: mutexRule, write: func(h *written) {
			h.look(0, 10, 20, true)
			h.free(0, 30, 31)
			h.look(1, 11, 21, true)
			h.free(1, 12, 22)
		}},
		"tokens fall":                      {rule: mutexRule, write: func(h *written) { h.writes(0, 2, 10, 20); h.writes(1, 1, 30, 40) }, other: 1},
		"killed":                           {rule: mutexRule, write: func(h *written) { h.holds(0, nobody, 1, 10, 20); h.holds(1, nobody, 2, 30, 40) }, deaths: died(25, 99)},
		"a token again, in one process":    {rule: sharedRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }},
		"a token again, in two":            {rule: sharedRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(2, 7, 30, 40) }, other: 1},
		"a token again, of a mutex":        {rule: mutexRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }, other: 1},
		"a writer's token again":           {rule: keptRWRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }},
		"a writer's token again, in two":   {rule: keptRWRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(2, 7, 30, 40) }, other: 1},
		"a writer's token again, not kept": {rule: rwRule, write: func(h *written) { h.writes(1, 7, 10, 20); h.writes(1, 7, 30, 40) }, other: 1},
		"two keys":                         {rule: mutexRule, write: func(h *written) { h.uses(1, claim{Of: 1}, 7, 10, 30); h.uses(2, claim{Of: 2}, 7, 20, 40) }},
		"one key":                          {rule: mutexRule, write: func(h *written) { h.uses(1, claim{Of: 2}, 7, 10, 30); h.uses(2, claim{Of: 2}, 8, 20, 40) }, overlap: true, other: 1},

		"readers together, then writers one by one": {rule: rwRule, write: func(h *written) {
			h.reads(0, 1, 10, 30)
			h.reads(1, 2, 11, 40)
			h.reads(2, 3, 12, 20)
			h.writes(0, 4, 50, 60)
			h.writes(1, 5, 70, 80)
			h.reads(0, 6, 90, 95)
		}},
		"two writers":              {rule: rwRule, write: func(h *written) { h.writes(0, 1, 10, 30); h.writes(1, 2, 20, 40) }, overlap: true, other: 1},
		"a reader beside a writer": {rule: rwRule, write: func(h *written) { h.writes(0, 1, 10, 30); h.reads(1, 2, 20, 40) }, overlap: true, other: 1},
		"a writer beside a reader": {rule: rwRule, write: func(h *written) {
			h.reads(1, 1, 10, 30)
			h.reads(2, 2, 11, 12)
			h.writes(0, 3, 20, 40)
		}, overlap: true, other: 1},
		"a reader during a writer": {rule: rwRule, write: func(h *written) { h.writes(0, 1, 10, 90); h.reads(1, 2, 20, 40) }, overlap: true, other: 1},
		"a downgrade, with readers and then a writer": {rule: rwRule, write: func(h *written) {
			h.downgrades(0, 10, 30, 60)
			h.reads(1, 2, 40, 70)
			h.writes(2, 3, 80, 90)
		}},
		"a reader before the downgrade": {rule: rwRule, write: func(h *written) { h.downgrades(0, 10, 30, 60); h.reads(1, 2, 20, 70) }, overlap: true, other: 1},
		"a writer after the downgrade":  {rule: rwRule, write: func(h *written) { h.downgrades(0, 10, 30, 60); h.writes(1, 2, 40, 70) }, overlap: true, other: 1},
		"a writer in the middle of the downgrade": {rule: rwRule, write: func(h *written) {
			h.downgrades(0, 10, 30, 60)
			h.look(1, 30, 31, true)
			h.free(1, 31, 32)
		}, other: 1},
		"a writer's token is old":                   {rule: rwRule, write: func(h *written) { h.reads(0, 5, 10, 20); h.writes(1, 4, 30, 40) }, other: 1},
		"a reader's token is older than a writer's": {rule: rwRule, write: func(h *written) { h.writes(0, 5, 10, 20); h.reads(1, 4, 30, 40) }, other: 1},
		"readers in any order":                      {rule: rwRule, write: func(h *written) { h.reads(0, 5, 10, 20); h.holds(1, claim{Weight: 1}, 0, 30, 40) }},

		"as many as there are": {rule: semRule, write: func(h *written) {
			h.leases(1, 2, 9, 10, 30)
			h.leases(2, 1, 9, 11, 30)
			h.leases(3, 3, 31, 40, 50)
		}},
		"one too many": {rule: semRule, write: func(h *written) { h.leases(1, 2, 9, 10, 30); h.leases(2, 2, 9, 20, 40) }, overlap: true, other: 1},
		"more by a higher limit": {rule: semRule, write: func(h *written) {
			h.leases(1, 3, 9, 10, 90)
			h.resize(0, 5, 20, 25, 26)
			h.leases(2, 2, 21, 30, 90)
		}},
		"more before the limit is higher": {rule: semRule, write: func(h *written) {
			h.leases(1, 3, 9, 10, 90)
			h.leases(2, 2, 11, 30, 90)
			h.resize(0, 5, 40, 45, 46)
		}, overlap: true, other: 1},
		"too many for the higher limit": {rule: semRule, write: func(h *written) {
			h.leases(1, 3, 9, 10, 90)
			h.resize(0, 4, 20, 25, 26)
			h.leases(2, 2, 27, 30, 90)
		}, overlap: true, other: 1},
		"let in before the limit is lower": {rule: semRule, write: func(h *written) {
			h.leases(1, 1, 9, 10, 90)
			h.leases(2, 2, 9, 20, 90)
			h.resize(0, 1, 40, 45, 46)
			h.leases(3, 1, 90, 95, 99)
		}},
		"too many after the limit is lower": {rule: semRule, write: func(h *written) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(0, 1, 40, 45, 46)
			h.leases(2, 1, 47, 50, 90)
		}, overlap: true, other: 1},
		"while the limit becomes lower": {rule: semRule, write: func(h *written) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(0, 1, 40, 60, 61)
			h.leases(2, 1, 42, 50, 90)
		}},
		"by a server that lags": {rule: semRule, write: func(h *written) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(0, 1, 40, 45, 70)
			h.leases(2, 1, 47, 50, 90)
		}},
		"by a server that is not known to follow": {rule: semRule, write: func(h *written) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(0, 1, 40, 45, 0)
			h.leases(2, 1, 47, 50, 90)
		}},
		"told late": {rule: semRule, write: func(h *written) {
			h.leases(1, 1, 9, 10, 90)
			h.resize(0, 1, 40, 45, 46)
			h.leases(2, 1, 39, 60, 90)
		}},
		// Schedules with Resize: a contender behind is let in under a higher limit. A contender
		// ahead of it does not see this, and comes in after the limit is lower.
		"up and down again, and one ahead comes back": {rule: semRule, write: func(h *written) {
			h.resize(0, 1, 1, 2, 3)
			h.leases(1, 1, 9, 10, 90)
			h.resize(0, 3, 20, 25, 26)
			h.leases(3, 1, 27, 30, 90)
			h.resize(0, 2, 40, 45, 46)
			h.leases(2, 1, 50, 60, 90)
		}, overlap: true, other: 1},
		"down, and one ahead comes back": {rule: semRule, write: func(h *written) {
			h.leases(1, 3, 9, 10, 20)
			h.leases(3, 1, 21, 30, 90)
			h.leases(4, 1, 21, 30, 90)
			h.resize(0, 1, 40, 45, 46)
			h.leases(2, 1, 50, 60, 90)
		}, overlap: true, other: 1},
		"two limits at once, by the higher": {rule: semRule, write: func(h *written) {
			h.resize(0, 1, 10, 30, 31)
			h.resize(0, 5, 10, 30, 31)
			h.leases(1, 5, 40, 50, 60)
		}},
		"two limits at once, by either": {rule: semRule, write: func(h *written) {
			h.resize(0, 1, 10, 30, 31)
			h.resize(0, 5, 10, 30, 31)
			h.leases(1, 1, 40, 50, 90)
			h.leases(2, 1, 60, 61, 90)
			h.resize(0, 1, 64, 65, 66)
			h.leases(3, 1, 67, 70, 90)
		}, overlap: true, other: 1},
		"a killed Resize that may have been": {rule: semRule, write: func(h *written) {
			h.resize(0, 5, 20, 0, 0)
			h.leases(1, 5, 60, 70, 90)
		}, deaths: died(30, 99)},
		"a killed Resize that can have been no more": {rule: semRule, write: func(h *written) {
			h.resize(0, 5, 20, 0, 0)
			h.leases(1, 5, 60, 70, 90)
			h.resize(2, 3, 40, 45, 46)
		}, deaths: died(30, 99, 99), overlap: true, other: 1},
		"killed with its leases": {rule: semRule, write: func(h *written) {
			h.holds(1, claim{Weight: 3, View: 9}, 0, 10, 20)
			h.leases(2, 3, 25, 30, 40)
		}, deaths: died(99, 28, 99)},
		"leases that were lost, and did not know": {rule: semRule, write: func(h *written) { h.leases(1, 1, 9, 10, 60); h.leases(2, 3, 15, 20, 40) }, overlap: true, other: 1},

		"as many ahead": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1000, freed(1200))
			h.asks(2, 1010, freed(1220))
			h.asks(3, 1100, turnedAway(2, 1100, 1110))
		}},
		"one too few": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1000, freed(1080))
			h.asks(2, 1010, freed(1220))
			h.asks(3, 1100, turnedAway(2, 1100, 1110))
		}, other: 1},
		"one more comes in time": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1105, freed(1300))
			h.asks(3, 1100, turnedAway(1, 1100, 1110))
		}},
		"one more comes too late": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1111, freed(1300))
			h.asks(3, 1100, turnedAway(1, 1100, 1110))
		}, other: 1},
		"another that is refused": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1000, freed(1200))
			h.asks(2, 1050, turnedAway(1, 1050, 1105))
			h.asks(3, 1100, turnedAway(2, 1100, 1110))
		}},
		"a release that was not confirmed": {rule: mutexRule, write: func(h *written) {
			last := freed(1050)
			last.Error = "pending"
			h.asks(1, 1000, last)
			h.asks(3, 1100, turnedAway(1, 1100, 1110))
			h.asks(4, 1500, turnedAway(1, 1500, 1510))
		}, other: 1},
		"a session before": {rule: mutexRule, write: func(h *written) {
			last := freed(1050)
			last.Moved = true
			h.asks(1, 1000, last)
			h.asks(3, 1100, turnedAway(1, 1100, 1110))
			h.asks(4, 1500, turnedAway(1, 1500, 1510))
		}, other: 1},
		"a process that was killed": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1000, event{What: eventAsks, From: 1000, To: 1000})
			h.asks(3, 1100, turnedAway(1, 1100, 1110))
			h.asks(4, 1500, turnedAway(1, 1500, 1510))
		}, deaths: died(math.MaxInt64, 1020), other: 1},
		"a try, just after a holder": {rule: mutexRule, write: func(h *written) {
			h.asks(1, 1000, freed(1095))
			h.asks(3, 1100, turnedAway(1, 1100, 1110))
		}},
		"a reader behind readers": {rule: rwRule, write: func(h *written) {
			reads, refusal := freed(1200), turnedAway(1, 1100, 1110)
			reads.claim, refusal.claim, refusal.Refused.Reads = claim{Weight: 1}, claim{Weight: 1}, true
			h.asks(1, 1000, reads)
			h.asks(3, 1100, refusal)
		}, other: 1},
		"alone": {rule: mutexRule, write: func(h *written) {
			alone := turnedAway(1, 1100, 1110)
			alone.Alone = true
			h.asks(1, 1000, freed(1200))
			h.asks(3, 1100, alone)
		}, other: 1},
		"a stranger": {rule: mutexRule, write: func(h *written) {
			h.add(event{What: eventMissed, Error: "lock /a: " + errNoToken.Error()})
			h.add(event{What: eventMissed, Error: fmt.Errorf("lock /a: %w", zk.ErrNoAuth).Error()})
		}, other: 1},
	} {
		var h written
		tt.write(&h)
		v := judge(tt.rule, h.events, tt.deaths, brief, tt.excused)
		if got := len(v.violations) > 0; got != tt.overlap {
			t.Errorf("%s: more held than may be is %v: %q", name, got, v.violations)
		}
		if n := len(v.other); n != tt.other {
			t.Errorf("%s: %d other findings, want %d: %q", name, n, tt.other, v.other)
		}
		if v.undecided > 0 {
			t.Errorf("%s: not decided", name)
		}
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
			func(h *written, i int64) { h.leases(2, 1, 100*i+50, 100*i+60, 100*i+70) },
			func(h *written) { h.leases(1, 1, 1, 2, math.MaxInt32); h.resize(0, 2, 10, 20, 21) },
			func(h *written) { h.leases(3, 2, 100*pieceSize+51, 100*pieceSize+52, 100*pieceSize+53) },
		},
	} {
		var h written
		tt.first(&h)
		for i := range int64(3 * pieceSize) {
			tt.write(&h, i)
		}
		check := func() []string {
			bad, _ := linearizable(history(spans(h.events, nil), resizes(h.events, nil)), tt.limit, tt.shared)
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

// A heap that grows with every round is told from one that does not.
func TestJudgeHeap(t *testing.T) {
	const mib = 1 << 20
	for name, tt := range map[string]struct {
		heap  func(i int) int
		grows bool
	}{
		"flat":                {func(i int) int { return 10*mib + i%3*mib/4 }, false},
		"warming up":          {func(i int) int { return min(i, 2) * 5 * mib }, false},
		"one that stands out": {func(i int) int { return (10 + 90*(i/29)) * mib }, false},
		"growing":             {func(i int) int { return 10*mib + i*mib/4 }, true},
	} {
		var heaps []int
		for i := range 30 {
			heaps = append(heaps, tt.heap(i))
		}
		if _, _, grows := judgeHeap(heaps); grows != tt.grows {
			t.Errorf("%s: grows is %v", name, grows)
		}
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
